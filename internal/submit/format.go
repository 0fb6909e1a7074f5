package submit

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/roost-batch/roost"
)

// Format prints diagnostics for people, each with its place, the line of src, a caret under the very columns, the cause
// and the cure. Lines are folded at width (0: not at all).
func Format(diags hcl.Diagnostics, src []byte, width int, color bool) string { return "" }

// ExitKind returns the kind of error that diags amount to: NoInput when all that is wrong is a file that is missing or
// cannot be read, Invalid for everything else, and 0 when there is no error.
func ExitKind(diags hcl.Diagnostics) roost.Kind { return 0 }
