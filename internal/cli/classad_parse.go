package cli

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// parseClassads prints each ad of some files in one form, and all that is wrong with the
// others.
func parseClassads(c *invocation, files []string) error {
	if c.flag("old") && c.wantsJSON() {
		return withHint(usageErrorf("--old and --json are two ways to print"), "choose one of them")
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	m, printed, wrong := &diagnostics{invocation: c}, 0, 0
	for _, file := range files {
		src, err := c.readSource(file)
		if err != nil {
			return err
		}
		ads, _, n := m.parseAds(src)
		wrong += n
		for _, ad := range ads {
			switch text := ad.String(); {
			case c.wantsJSON():
				record, err := ad.MarshalJSON()
				if err != nil {
					return err
				}
				text = string(record)
				fallthrough
			case !c.flag("old"):
				fmt.Fprintln(c.stdout, text)
			case printed > 0:
				fmt.Fprintln(c.stdout)
				fallthrough
			default:
				fmt.Fprint(c.stdout, ad.Old())
			}
			printed++
		}
	}
	if wrong > 0 {
		return exitError(roost.Invalid.ExitCode())
	}
	return nil
}
