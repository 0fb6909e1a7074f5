package starter

import _ "embed"

// initCode is the program of a sandbox's first process.
//
//go:embed init/init_amd64.bin
var initCode string
