//go:build !cgo

package account

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// exitNotFound is getent's exit status for a key that is not in the database.
const exitNotFound = 2

func lookUser(uid uint32) (UserEntry, error) {
	row, err := databaseEntry("passwd", strconv.FormatUint(uint64(uid), 10))
	if err != nil || row == nil {
		return UserEntry{UID: uid}, err
	}
	if len(row) < 4 {
		return UserEntry{}, fmt.Errorf("getent passwd %d: %q", uid, strings.Join(row, ":"))
	}
	u := UserEntry{UID: uid, IsKnown: true, Name: row[0]}
	gid, err := strconv.ParseUint(row[3], 10, 32)
	if err != nil {
		return UserEntry{}, err
	}
	u.GID = uint32(gid)
	if len(row) > 5 {
		u.Home = row[5]
	}
	text, err := commandOutput("id", "-G", "--", u.Name)
	if err != nil {
		return UserEntry{}, err
	}
	for _, word := range strings.Fields(text) {
		if g, err := strconv.ParseUint(word, 10, 32); err == nil {
			u.Groups = append(u.Groups, uint32(g))
		}
	}
	slices.Sort(u.Groups)
	return u, nil
}

func lookGroup(gid uint32) (GroupEntry, error) {
	row, err := databaseEntry("group", strconv.FormatUint(uint64(gid), 10))
	if err != nil || row == nil {
		return GroupEntry{GID: gid}, err
	}
	return GroupEntry{GID: gid, IsKnown: true, Name: row[0]}, nil
}

// databaseEntry returns a row of one of the system's databases, or nil.
func databaseEntry(database, key string) ([]string, error) {
	text, err := commandOutput("getent", "--", database, key)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == exitNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getent %s %s: %w", database, key, err)
	}
	row, _, _ := strings.Cut(text, "\n")
	return strings.Split(row, ":"), nil
}

// otherEntry returns a row that package os/user does not find, because without cgo it
// reads only /etc/passwd and /etc/group.
func otherEntry(database, key string) ([]string, error) {
	row, err := databaseEntry(database, key)
	if err == nil && row == nil {
		err = errors.New(database + " " + key + ": not in the directory")
	}
	return row, err
}

// commandOutput runs one of the system's programs, for at most lookupTimeout.
func commandOutput(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	return string(out), err
}
