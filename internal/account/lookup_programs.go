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

// notThere is getent's exit status for a key that is not in the database.
const notThere = 2

func lookUser(uid uint32) (User, error) {
	row, err := entry("passwd", uid)
	if err != nil || row == nil {
		return User{UID: uid}, err
	}
	if len(row) < 4 {
		return User{}, fmt.Errorf("getent passwd %d: %q", uid, strings.Join(row, ":"))
	}
	u := User{UID: uid, Known: true, Name: row[0]}
	gid, err := strconv.ParseUint(row[3], 10, 32)
	if err != nil {
		return User{}, err
	}
	u.GID = uint32(gid)
	text, err := printed("id", "-G", "--", u.Name)
	if err != nil {
		return User{}, err
	}
	for _, word := range strings.Fields(text) {
		if g, err := strconv.ParseUint(word, 10, 32); err == nil {
			u.Groups = append(u.Groups, uint32(g))
		}
	}
	slices.Sort(u.Groups)
	return u, nil
}

func lookGroup(gid uint32) (Group, error) {
	row, err := entry("group", gid)
	if err != nil || row == nil {
		return Group{GID: gid}, err
	}
	return Group{GID: gid, Known: true, Name: row[0]}, nil
}

// entry is a row of one of the system's databases; nil if there is none.
func entry(database string, id uint32) ([]string, error) {
	text, err := printed("getent", database, strconv.FormatUint(uint64(id), 10))
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == notThere {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getent %s %d: %w", database, id, err)
	}
	row, _, _ := strings.Cut(text, "\n")
	return strings.Split(row, ":"), nil
}

// printed runs one of the system's programs, no longer than anybody waits for it.
func printed(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	return string(out), err
}
