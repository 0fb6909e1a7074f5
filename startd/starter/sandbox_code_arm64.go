package starter

import _ "embed"

// initCode is roost-init, the first process of a sandbox while its task runs.
//
//go:embed init/init_arm64.bin
var initCode string

// setupCode is roost-setup, which makes a sandbox from inside by a list of system calls.
//
//go:embed init/setup_arm64.bin
var setupCode string
