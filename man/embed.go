// Package man holds the manual, for programs that install themselves.
package man

import "embed"

// ManualPages are the pages, each in a file NAME.SECTION.
//
//go:embed *.1 *.5 *.7 *.8
var ManualPages embed.FS
