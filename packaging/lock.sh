#!/bin/sh
# Write, from pyproject.toml, packaging/requirements.lock (every package of a production installation, with its version and
# hashes) and packaging/sbom.cdx.json (their licences, as CycloneDX), with the Python $1: the oldest one that is supported.
set -eu
python=$1
folder=build/lock
rm -rf "$folder"
"$python" -m venv "$folder/tools"
"$python" -m venv --without-pip "$folder/installed"
"$folder/tools/bin/pip" install --quiet pip-tools cyclonedx-bom
CUSTOM_COMPILE_COMMAND="make lock" "$folder/tools/bin/pip-compile" --quiet --generate-hashes --allow-unsafe \
    --build-deps-for wheel --extra tui --extra web --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
    --no-emit-options --upgrade --output-file packaging/requirements.lock pyproject.toml
"$folder/tools/bin/pip" --python "$folder/installed" install --quiet --no-deps --require-hashes \
    -r packaging/requirements.lock
"$folder/tools/bin/cyclonedx-py" environment --pyproject pyproject.toml --output-reproducible \
    --output-file "$folder/sbom.json" "$folder/installed"
# Only what the packages are: addresses and local paths are left out.
"$python" - "$folder/sbom.json" packaging/sbom.cdx.json <<'END'
import json, sys

with open(sys.argv[1]) as file:
    found = json.load(file)
about = found["metadata"]
for part in [*found["components"], about["component"], *about["tools"]["components"], about]:
    part.pop("externalReferences", None)
    part.pop("properties", None)
with open(sys.argv[2], "w") as file:
    json.dump(found, file, indent=1)
    file.write("\n")
END
