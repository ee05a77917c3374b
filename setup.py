"""Find the packages of pilotfish: the root of the source is the package `pilotfish`, each folder in it a subpackage.

Rule: a new folder with an `__init__.py` is installed without being listed anywhere. Everything else about the
package stands in pyproject.toml.
"""

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

#: Folders of the source that are not installed. Anything else with an `__init__.py` is.
NOT_INSTALLED = ("tests", "tests.*", "benchmarks", "benchmarks.*", "docs", "docs.*", "build", "build.*")


class BuildPackages(build_py):
    """Install the root's modules without this file, which stands in the same folder."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Return (package, module, file) of a package's modules."""
        modules = super().find_package_modules(package, package_dir)
        return [row for row in modules if (row[0], row[1]) != ("pilotfish", "setup")]


setup(
    packages=["pilotfish", *(f"pilotfish.{name}" for name in find_packages(exclude=NOT_INSTALLED))],
    cmdclass={"build_py": BuildPackages},
)
