"""Compile the CPU kernels where there is a compiler; without one plait installs all the same."""

from __future__ import annotations

import platform
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

FOLDER = Path("kernels/native")
FLAGS = (
    *("-std=c++17", "-O3", "-g0", "-pthread", "-fvisibility=hidden"),
    *("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"),
    *("-Wno-psabi", "-Wno-maybe-uninitialized", "-Wno-uninitialized"),
)
# Kinds of processor: the name, the table that isa.cpp defines, and the compiler's flags.
PORTABLE = ("portable", "kPortable", ())
AVX2 = ("-mavx2", "-mfma", "-mf16c")
AVX_VNNI = "-mavxvnni"  # compilers from 2021 on have it
X86 = (
    ("avx2", "kAvx2", AVX2),
    ("avxvnni", "kAvxVnni", (*AVX2, AVX_VNNI)),
    (
        "avx512",
        "kAvx512",
        (
            *(*AVX2, "-mprefer-vector-width=512"),
            *(f"-mavx512{part}" for part in ("f", "bw", "vl", "dq", "vnni", "bf16")),
        ),
    ),
)


class BuildKernels(build_ext):
    """Compiles isa.cpp once for each kind of processor, and links all of them together."""

    def build_extension(self, ext: Extension) -> None:
        """Build the one extension that there is."""
        is_x86 = platform.machine().lower() in ("x86_64", "amd64")
        has_avx_vnni = is_x86 and self._takes(AVX_VNNI)
        kinds = [PORTABLE, *(X86 if is_x86 else ())]
        if not has_avx_vnni:
            kinds = [kind for kind in kinds if AVX_VNNI not in kind[2]]
        with ThreadPoolExecutor() as pool:
            shared = pool.submit(
                self._compile, "api.cpp", "api", (f"-DPLAIT_HAS_AVX_VNNI={int(has_avx_vnni)}",)
            )
            compiled = [
                pool.submit(
                    self._compile,
                    "isa.cpp",
                    name,
                    (f"-DPLAIT_ISA={name}", f"-DPLAIT_TABLE={table}", *flags),
                )
                for name, table, flags in kinds
            ]
            # The order counts: of functions that several objects have, such as those of the
            # standard library, the linker keeps the first, and that must run on every machine.
            objects = [shared.result(), *(each.result() for each in compiled)]
        path = self.get_ext_fullpath(ext.name)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        self.compiler.link_shared_object(
            objects, path, extra_postargs=["-pthread"], target_lang="c++"
        )

    def _takes(self, flag: str) -> bool:
        """Say whether the compiler knows a flag."""
        empty = Path(self.build_temp) / "empty.cpp"
        empty.parent.mkdir(parents=True, exist_ok=True)
        empty.write_text("")
        try:
            self.compiler.compile([str(empty)], output_dir=self.build_temp, extra_postargs=[flag])
        except CompileError:
            return False
        return True

    def _compile(self, source: str, name: str, flags: tuple[str, ...]) -> str:
        folder = Path(self.build_temp) / name
        (built,) = self.compiler.compile(
            [str(FOLDER / source)],
            output_dir=str(folder),
            extra_postargs=[*FLAGS, *flags],
            depends=[str(path) for path in sorted(FOLDER.glob("*.h"))],
        )
        return built


setup(
    ext_modules=[
        Extension(
            "plait.kernels.native._native",
            sources=[str(FOLDER / "api.cpp"), str(FOLDER / "isa.cpp")],
            depends=[str(path) for path in sorted(FOLDER.glob("*.h"))],
            optional=True,
            language="c++",
        )
    ],
    cmdclass={"build_ext": BuildKernels},
)
