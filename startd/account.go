package startd

import (
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/files"
)

// firstUser is the lowest uid that is not the system's (login.defs(5), UID_MIN).
const firstUser = 1000

// mayRun says why a startd of user own does not run tasks of user uid; nil when it does.
func mayRun(own, uid uint32, allowRoot bool) error {
	switch {
	case own != 0 && uid != own:
		return fmt.Errorf("%w: this startd runs as uid %d without root's rights, so it cannot run tasks of uid %d", roost.PermissionDenied, own, uid)
	case own == 0 && uid < firstUser && !allowRoot:
		return fmt.Errorf("%w: uid %d is root or a system user, and allow_root is not set for this startd", roost.PermissionDenied, uid)
	}
	return nil
}

// credential is the user with the groups that the machine's user database gives him. A user that is not in it has none.
func credential(uid, gid uint32) files.Credential {
	c := files.Credential{UID: uid, GID: gid}
	if uid == uint32(os.Geteuid()) {
		groups, _ := os.Getgroups()
		for _, g := range groups {
			c.Groups = append(c.Groups, uint32(g))
		}
		return c
	}
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return c
	}
	ids, _ := u.GroupIds()
	for _, id := range ids {
		if g, err := strconv.ParseUint(id, 10, 32); err == nil {
			c.Groups = append(c.Groups, uint32(g))
		}
	}
	slices.Sort(c.Groups)
	return c
}
