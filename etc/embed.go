// Package etc holds the units for systemd, for programs that install themselves.
package etc

import "embed"

// UnitFiles are below "systemd". They name the programs in /usr/local.
//
//go:embed systemd/*.service
var UnitFiles embed.FS
