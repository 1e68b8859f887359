#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the directory in which Debian's package dataset-fashion-mnist installs Fashion-MNIST.
directory=$(dpkg -L dataset-fashion-mnist 2>/dev/null | sed -n 's|/train-images-idx3-ubyte.*||p' |
    head -n 1)
if [ -z "$directory" ]; then
    echo 'Fashion-MNIST is not installed: apt-get install dataset-fashion-mnist' >&2
    exit 1
fi
echo "$directory"
