#!/usr/bin/env bash
# fetch.sh DIR: get the browser of the tests, DIR/chromium, from the registry of npm. It needs nothing else of the machine,
# and no root: the package has the libraries and the font, too. DIR/.done is written last.
set -euo pipefail

dir=$(realpath -m "$1")
here=$(realpath "$(dirname "$0")")
command -v npm >/dev/null || { echo "fetch.sh: the tests of the page need Node.js with npm, which gets their browser" >&2 && exit 1; }

echo "getting a browser: $dir"
rm -rf "$dir"
mkdir -p "$dir/package"
cp "$here"/package*.json "$dir/package"
npm ci --prefix "$dir/package" --ignore-scripts --no-audit --no-fund --loglevel=error >"$dir/npm.log" 2>&1 || { tail -n 5 "$dir/npm.log" >&2 && exit 1; }
node --input-type=module - "$dir" <<'EOF'
import { createReadStream, createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress } from "node:zlib";
const dir = process.argv[2];
for (const name of ["chromium", "swiftshader.tar", "al2023.tar", "fonts.tar"]) {
  await pipeline(createReadStream(`${dir}/package/node_modules/@sparticuz/chromium/bin/${name}.br`), createBrotliDecompress(), createWriteStream(`${dir}/${name}`, { mode: 0o755 }));
}
EOF
for archive in "$dir"/*.tar; do
	tar -x -C "$dir" -f "$archive"
	rm "$archive"
done
cp "$dir"/package/node_modules/dejavu-fonts-ttf/ttf/DejaVuSans{,-Bold,Mono,Mono-Bold}.ttf "$dir/fonts"
rm -rf "$dir/package"
cat >"$dir/fonts.conf" <<EOF
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>$dir/fonts</dir><cachedir>$dir/fonts-cache</cachedir>
  <alias binding="strong"><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
  <match><test qual="all" name="family" compare="not_eq"><string>DejaVu Sans Mono</string></test><edit name="family" mode="append_last"><string>DejaVu Sans</string></edit></match>
</fontconfig>
EOF
touch "$dir/.done"
