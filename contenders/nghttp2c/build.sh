#!/bin/sh
# sh build.sh DIRECTORY: builds DIRECTORY/nghttp2c. Needs a C compiler, libnghttp2-dev and libssl-dev.
set -eu
cd "$(dirname "$0")"
mkdir -p "$1"
"${CC:-cc}" -std=gnu17 -O3 -flto -Wall -Wextra -Werror=implicit -Wno-deprecated-declarations \
    -o "$1/nghttp2c" main.c connection.c socket.c h1.c h2.c tls.c routes.c buffer.c -lnghttp2 -lssl -lcrypto
