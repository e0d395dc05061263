#!/bin/sh
# Programs of Debian 13 in a directory, with their libraries and loader, for systems whose own have no HTTP/3:
#
#     sh install.sh OUT PACKAGE...
#
# The packages come by apt-get from where this system has its own; nothing outside of OUT changes. OUT/run PROGRAM starts one.
set -eu
out=$1
shift
release=trixie
. /etc/os-release

state=$out/apt
mkdir -p "$state/sources" "$state/lists/partial" "$state/cache/archives/partial" "$out/tree"
for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do
    [ -f "$file" ] || continue
    sed "s/$VERSION_CODENAME/$release/g" "$file" > "$state/sources/${file##*/}"
done
# No package counts as installed: so the libraries come, too.
: > "$state/status"
cat > "$state/apt.conf" <<END
Dir::State "$state";
Dir::State::status "$state/status";
Dir::Cache "$state/cache";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$state/sources";
APT::Sandbox::User "root";
END
export APT_CONFIG="$state/apt.conf"
apt-get update -qq
apt-get install -y -qq --download-only --no-install-recommends "$@"
for package in "$state"/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$out/tree"
done
rm -r "$state"

cat > "$out/run" <<'END'
#!/bin/sh
# run PROGRAM [ARGUMENT...]: by the directory's own loader and libraries.
tree=$(dirname "$0")/tree
program=$tree/usr/sbin/$1
[ -x "$program" ] || program=$tree/usr/bin/$1
shift
loader=$(echo "$tree"/usr/lib/*/ld-linux-*.so.*)
exec "$loader" --library-path "$(dirname "$loader")" "$program" "$@"
END
chmod +x "$out/run"
