package schedd

import (
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/sitescript"
)

// openScripts prepares to contain the programs of the site. It ends those that an earlier
// start of the daemon has left. It is nil where none are configured.
func openScripts(s *Schedd) *sitescript.Groups {
	own := s.node.Schedd
	if own.Filter.Program == "" && own.Hooks == (config.JobHooks{}) {
		return nil
	}
	groups, err := sitescript.OpenGroups(s.stateDir())
	if err != nil {
		s.log.Error("processes of earlier programs of the site are left", "err", err)
	}
	return groups
}
