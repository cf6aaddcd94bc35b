"""Documents of a few hundred tokens, and what is asked of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Document:
    """A text; `quotes` say which of its sentences are wanted."""

    text: str
    quotes: tuple[str, ...]


DOCUMENTS = (
    Document(
        "Minutes of the harbour committee, 14 March 2024. Present were Ingrid Solberg (chair), "
        "Tomas Varga, Leila Haddad and the harbour master, Owen Price. The chair opened the "
        "meeting at half past nine and the minutes of February were accepted without changes. "
        "Mr Price reported that the eastern pier lost eleven planks in the storm of 2 March and "
        "that two lamps are still out. Repairs by the firm Nordbygg would cost 18,400 euros and "
        "take three weeks. Ms Haddad asked whether the insurance covers the damage; the answer of "
        "the insurer is expected by 28 March. The committee agreed to close the eastern pier to "
        "visitors until the planks are replaced. Mr Varga presented the new fees for small boats, "
        "which rise from 210 to 235 euros a season. The fees were accepted with three votes to "
        "one. The fishermen's association has asked for a second crane on the western quay. The "
        "committee will visit the quay on 9 April before it decides. The meeting closed at ten "
        "past eleven. The next meeting is on 11 April 2024 in the old customs house.",
        (
            "says what the repairs would cost",
            "says until when the pier is closed",
            "says when the next meeting is",
        ),
    ),
    Document(
        "A fire broke out in the warehouse of the paper mill in Aldenport early on Sunday "
        "morning. A night guard, Marcus Bell, noticed smoke at 3:40 and called the fire brigade, "
        "which arrived nine minutes later with four engines. The roof of the northern hall "
        "collapsed shortly after five. Nobody was injured, but two firefighters were treated for "
        "smoke in the county hospital. According to the chief of the brigade, Helen Okafor, the "
        "fire probably began in a charging station for forklifts. About 900 tonnes of paper were "
        "destroyed, and the mill puts the damage at 2.6 million dollars. Smoke drifted over the "
        "southern districts until noon, and residents were asked to keep their windows shut. The "
        "road along the river was closed between the bridge and the station and opened again at "
        "two in the afternoon. The mill employs 340 people. Its director, Paul Lindqvist, said "
        "that production would start again within ten days. The police have begun an "
        "investigation and ask witnesses to call the station in Mill Street.",
        (
            "says how the fire probably began",
            "says how high the damage is",
            "says when production would start again",
        ),
    ),
    Document(
        "Dear Ms Ferreira, thank you for staying at the Hotel Bellavista from 3 to 7 June. We are "
        "sorry to hear that your room, number 412, was not as you had expected. Our manager on "
        "duty, Giulia Conti, has looked into each of your complaints. The air conditioning "
        "failed on the second night because a valve was blocked, and it was repaired on 5 June. "
        "The noise came from work on the lift, which should have ended at six in the evening. "
        "The breakfast that you ordered for 6:30 was brought an hour late because the order was "
        "not passed on by the night shift. None of this is the standard that we set ourselves. We "
        "have therefore paid back 148.00 euros to the card that ends in 7731, and the money should "
        "arrive within five working days. We would also like to offer you one free night on your "
        "next visit, in a room with a view of the lake. The voucher carries the code BV-2096 and "
        "is valid until 30 September 2025. Should you have further questions, please call Mr "
        "Conti's office directly. With kind regards, Stefano Ricci, guest relations.",
        (
            "says why the air conditioning failed",
            "says how much money was paid back",
            "says until when the voucher is valid",
        ),
    ),
    Document(
        "The reading room of the town library will be renovated between 8 July and 23 August. "
        "During this time the shelves for history and geography move to the gallery on the second "
        "floor. The children's library stays open, but its entrance is moved to Garden Lane. Books "
        "that were ordered can be collected at the counter in the hall from Monday to Friday "
        "between ten and six. The architect Nadia Rahman planned the works together with the "
        "friends of the library. The old windows from 1926 are kept and get new glass, and the "
        "lamps are replaced by ones that use a third of the power. Forty new desks have sockets "
        "and a light of their own. The costs of 312,000 pounds are shared by the town and the "
        "Hartley foundation. Anyone who would like to say goodbye to the old room is invited on "
        "Friday 5 July at seven. The poet Samuel Osei will read from his new book, and wine from "
        "the region will be served. The director, Dr Beatrice Moreau, asks all readers for their "
        "patience. Fines for late books are not charged during the works.",
        (
            "says who shares the costs",
            "says what happens to the old windows",
            "says where ordered books can be collected",
        ),
    ),
)

QUESTIONS = (
    "Why is the sky blue?",
    "What is a good breakfast before a long run?",
    "How do plants drink water?",
    "Tell me a short story about a lighthouse.",
    "What is the difference between a lake and a pond?",
    "Give me three tips for learning a language.",
)
