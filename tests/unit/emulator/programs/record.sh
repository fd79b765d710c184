#!/bin/sh
# Compile the programs to PTX with nvcc; the PTX is what the tests read.
set -e
cd "$(dirname "$0")"
for source in *.cu; do
  nvcc -ptx -arch=sm_80 -lineinfo "$source" -o "${source%.cu}.ptx"
  # Paths of this machine say nothing to others.
  sed -i 's|"[^"]*/\([^/"]*\)"|"\1"|' "${source%.cu}.ptx"
done
