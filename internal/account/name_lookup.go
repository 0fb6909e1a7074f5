package account

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"strings"
)

// CurrentUser returns the user of this process. The environment does not matter.
func CurrentUser() (*user.User, error) {
	uid := strconv.Itoa(os.Getuid())
	u, err := user.LookupId(uid)
	if err == nil {
		return u, nil
	}
	if u, err := otherUser(uid); err == nil {
		return u, nil
	}
	return nil, err
}

// UserNamed returns the user of a name, and user.UnknownUserError if there is none.
func UserNamed(name string) (*user.User, error) {
	u, err := user.Lookup(name)
	if err == nil {
		return u, nil
	}
	if u, err := otherUser(name); err == nil {
		return u, nil
	}
	return nil, err
}

// GroupName returns the name of a group.
func GroupName(gid int) (string, error) {
	g, err := user.LookupGroupId(strconv.Itoa(gid))
	if err == nil {
		return g.Name, nil
	}
	if row, err := otherEntry("group", strconv.Itoa(gid)); err == nil {
		return row[0], nil
	}
	return "", err
}

// otherUser returns a user whom package os/user does not find.
func otherUser(key string) (*user.User, error) {
	row, err := otherEntry("passwd", key)
	if err != nil {
		return nil, err
	}
	if len(row) < 6 {
		return nil, errors.New("getent passwd " + key + ": " + strings.Join(row, ":"))
	}
	return &user.User{Username: row[0], Uid: row[2], Gid: row[3], Name: row[4], HomeDir: row[5]}, nil
}
