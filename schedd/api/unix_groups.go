package api

import (
	"cmp"
	"fmt"
	"os"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue"
)

// resolveUnixGroup returns the submitting user with the Unix group that his jobs request.
// He must be a member of that group, according to this machine. A job that names no group
// runs in the group with which the user submits (OpenPBS qsub(1B), -W group_list).
func (s *Service) resolveUnixGroup(who queue.CallerIdentity, specs []queue.SubmitSpec) (queue.CallerIdentity, error) {
	stated, own := "", s.users.GroupName(who.GID)
	for i := range specs {
		name, _ := specs[i].Ad.Str(roost.AttrUnixGroup)
		if name = cmp.Or(name, own); i > 0 && name != stated {
			return who, fmt.Errorf("unix group %q: %w: jobs that are submitted together run in one group, and "+
				"another one names %q", name, roost.Invalid, stated)
		}
		stated = name
	}
	if stated == "" || stated == own {
		return who, nil
	}
	gid, ok := s.users.MemberGID(who.UID, stated)
	switch {
	case !ok:
		return who, fmt.Errorf("unix group %q: %w: %s is not in it", stated, roost.PermissionDenied, who.User)
	case os.Geteuid() != 0:
		return who, fmt.Errorf("unix group %q: %w: this schedd does not run as root, so all jobs run in the group of "+
			"who started it", stated, roost.Invalid)
	}
	who.GID = gid
	return who, nil
}
