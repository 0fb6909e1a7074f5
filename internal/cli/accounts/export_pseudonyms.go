package accounts

import (
	"github.com/roost-batch/roost/internal/accounting/export"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// exportPseudonyms returns the pseudonyms that --pseudonyms asks for; nil for none. The
// key is that of --key, or a random one, whose pseudonyms no other export has.
func exportPseudonyms(c *frame.Invocation) (*export.Pseudonyms, error) {
	if !c.Flag("pseudonyms") {
		return nil, nil
	}
	key, err := traceKey(c)
	if err != nil {
		return nil, err
	}
	return export.NewPseudonyms(key)
}
