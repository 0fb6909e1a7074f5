#!/usr/bin/env bash
# Generates the Go code of the protobuf messages into the given directory.
set -euo pipefail
out=$(realpath "$1")
cd "$(dirname "$0")/.."
"${GO:-go}" build -o bin/ google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc
PATH="$PWD/bin:$PATH" protoc -I internal/wire \
	--go_out="$out" --go_opt=paths=source_relative --go-grpc_out="$out" --go-grpc_opt=paths=source_relative \
	internal/wire/roost.proto
