// Package etc embeds the systemd units for programs that install themselves.
package etc

import "embed"

// UnitFiles contains the units below "systemd". They use the programs in /usr/local.
//
//go:embed systemd/*.service
var UnitFiles embed.FS
