"""Find the packages of pilotfish: the root of the source is the package `pilotfish`, each folder in it a subpackage.

Rule: a new folder with an `__init__.py` is installed without being listed anywhere. Everything else about the
package stands in pyproject.toml.
"""

import runpy
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

#: Folders of the source that are not installed. Anything else with an `__init__.py` is.
NOT_INSTALLED = ("tests", "tests.*", "benchmarks", "benchmarks.*", "docs", "docs.*", "build", "build.*")


def write_commit(folder: Path) -> list[str]:
    """Write the commit of this source into a folder, if it is known; return the file's path, if it was written."""
    source = runpy.run_path("built_from.py")
    commit, file = source["commit_of"](Path.cwd()), folder / source["COMMIT_FILE"]
    if commit:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{commit}\n", encoding="ascii")
    return [str(file)] if commit else []


class SourceDistribution(sdist):
    """Give the source distribution the commit of its clone."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Make the folder that is packed."""
        super().make_release_tree(base_dir, files)
        write_commit(Path(base_dir))


class BuildPackages(build_py):
    """Install the root's modules without this file, which stands in the same folder, and with the commit."""

    #: Files that were written here, not copied.
    written: list[str] = []

    def run(self) -> None:
        """Build the packages."""
        super().run()
        if not self.editable_mode:
            self.written = write_commit(Path(self.build_lib) / "pilotfish")

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """Return the files that were built."""
        return [*super().get_outputs(include_bytecode), *self.written]

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Return (package, module, file) of a package's modules."""
        modules = super().find_package_modules(package, package_dir)
        return [row for row in modules if (row[0], row[1]) != ("pilotfish", "setup")]


setup(
    packages=["pilotfish", *(f"pilotfish.{name}" for name in find_packages(exclude=NOT_INSTALLED))],
    cmdclass={"build_py": BuildPackages, "sdist": SourceDistribution},
)
