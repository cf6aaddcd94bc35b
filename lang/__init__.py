"""What an author writes, and the graph it becomes. Standard library only."""
