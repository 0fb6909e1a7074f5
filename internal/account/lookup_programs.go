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
	row, err := databaseEntry("passwd", uid)
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
	row, err := databaseEntry("group", gid)
	if err != nil || row == nil {
		return GroupEntry{GID: gid}, err
	}
	return GroupEntry{GID: gid, IsKnown: true, Name: row[0]}, nil
}

// databaseEntry returns a row of one of the system's databases, or nil.
func databaseEntry(database string, id uint32) ([]string, error) {
	text, err := commandOutput("getent", database, strconv.FormatUint(uint64(id), 10))
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == exitNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getent %s %d: %w", database, id, err)
	}
	row, _, _ := strings.Cut(text, "\n")
	return strings.Split(row, ":"), nil
}

// commandOutput runs one of the system's programs, for at most lookupTimeout.
func commandOutput(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	return string(out), err
}
