#!/usr/bin/env bash
# Compares the files of others that the pages need with what npm has, by the list
# versions.txt beside them. With the argument renew it writes files and checksums anew,
# for versions that were changed in the list.
set -euo pipefail
cd "$(dirname "$0")/../internal/web/page/static/vendor"
renew=${1:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
grep '^#' versions.txt >"$work/list"
while read -r file package path sum; do
	if [ ! -d "$work/$package" ]; then
		mkdir -p "$work/$package"
		(cd "$work/$package" && npm pack --silent "$package" >/dev/null && tar xzf ./*.tgz)
	fi
	now=$(sha256sum "$work/$package/package/$path" | cut -d' ' -f1)
	echo "$file $package $path $now" >>"$work/list"
	if [ "$renew" = renew ]; then
		cp "$work/$package/package/$path" "$file"
	elif [ "$now" != "$sum" ] || ! cmp -s "$work/$package/package/$path" "$file"; then
		echo "$file differs from that of $package: run scripts/vendor.sh renew" >&2
		bad=1
	fi
done < <(grep -v '^#' versions.txt)
[ "$renew" != renew ] || cp "$work/list" versions.txt
exit $bad
