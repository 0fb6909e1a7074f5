package classad

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// parseClassads prints each ad of some files in one form, and all that is wrong with the
// others.
func parseClassads(c *frame.Invocation, files []string) error {
	if c.Flag("old") && c.WantsJSON() {
		return frame.WithHint(frame.UsageErrorf("--old and --json are two ways to print"), "choose one of them")
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	m, printed, wrong := &diagnostics{Invocation: c}, 0, 0
	for _, file := range files {
		src, err := readSource(c, file)
		if err != nil {
			return err
		}
		ads, _, n := m.parseAds(src)
		wrong += n
		for _, ad := range ads {
			switch text := ad.String(); {
			case c.WantsJSON():
				record, err := ad.MarshalJSON()
				if err != nil {
					return err
				}
				text = string(record)
				fallthrough
			case !c.Flag("old"):
				fmt.Fprintln(c.Stdout, text)
			case printed > 0:
				fmt.Fprintln(c.Stdout)
				fallthrough
			default:
				fmt.Fprint(c.Stdout, ad.Old())
			}
			printed++
		}
	}
	if wrong > 0 {
		return frame.ExitError(roost.Invalid.ExitCode())
	}
	return nil
}
