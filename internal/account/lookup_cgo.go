//go:build cgo

package account

import (
	"errors"
	"os/user"
	"slices"
	"strconv"
)

func lookUser(uid uint32) (UserEntry, error) {
	found, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if unknown := user.UnknownUserIdError(0); errors.As(err, &unknown) {
		return UserEntry{UID: uid}, nil
	}
	if err != nil {
		return UserEntry{}, err
	}
	u := UserEntry{UID: uid, IsKnown: true, Name: found.Username, Home: found.HomeDir}
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	if err != nil {
		return UserEntry{}, err
	}
	u.GID = uint32(gid)
	ids, err := found.GroupIds()
	if err != nil {
		return UserEntry{}, err
	}
	for _, id := range ids {
		if g, err := strconv.ParseUint(id, 10, 32); err == nil {
			u.Groups = append(u.Groups, uint32(g))
		}
	}
	slices.Sort(u.Groups)
	return u, nil
}

// otherEntry finds nothing: with cgo, package os/user has asked NSS.
func otherEntry(database, key string) ([]string, error) {
	return nil, errors.New(database + " " + key + ": not in the directory")
}

func lookGroup(gid uint32) (GroupEntry, error) {
	found, err := user.LookupGroupId(strconv.FormatUint(uint64(gid), 10))
	if unknown := user.UnknownGroupIdError(""); errors.As(err, &unknown) {
		return GroupEntry{GID: gid}, nil
	}
	if err != nil {
		return GroupEntry{}, err
	}
	return GroupEntry{GID: gid, IsKnown: true, Name: found.Name}, nil
}
