# shellcheck shell=sh
# The flags of every build, vet and test, which the Makefile and the scripts share: with
# others Go would compile all packages once more. The tags leave out what no program here
# uses of its libraries, and what would only delay the start of each: the manual pages of
# urfave/cli, the request traces of grpc. Further tags go in front of these: a -tags on
# the command line replaces those of GOFLAGS.
LEAN=urfave_cli_no_docs,grpcnotrace
case " ${GOFLAGS:-} " in
*" -tags=$LEAN "*) ;;
*) GOFLAGS="${GOFLAGS:+$GOFLAGS }-trimpath -tags=$LEAN" ;;
esac

# Without a C compiler Go builds without cgo by itself, and the node then knows of no GPUs.
# The binding of NVML calls what NVIDIA calls deprecated.
CGO_CFLAGS="${CGO_CFLAGS:--g -O2 -Wno-deprecated-declarations}"
export LEAN GOFLAGS CGO_CFLAGS
