// Package etc embeds the systemd units for programs that install themselves, and the
// sample job files for the page that submits jobs.
package etc

import "embed"

// UnitFiles contains the units below "systemd". They use the programs in /usr/local.
//
//go:embed systemd/*.service
var UnitFiles embed.FS

// JobFiles contains the samples below "jobs". The first comment of each says what it is.
//
//go:embed jobs/*.hcl
var JobFiles embed.FS
