//go:build cgo

package account

import (
	"errors"
	"os/user"
	"slices"
	"strconv"
)

func lookUser(uid uint32) (User, error) {
	found, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if unknown := user.UnknownUserIdError(0); errors.As(err, &unknown) {
		return User{UID: uid}, nil
	}
	if err != nil {
		return User{}, err
	}
	u := User{UID: uid, Known: true, Name: found.Username}
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	if err != nil {
		return User{}, err
	}
	u.GID = uint32(gid)
	ids, err := found.GroupIds()
	if err != nil {
		return User{}, err
	}
	for _, id := range ids {
		if g, err := strconv.ParseUint(id, 10, 32); err == nil {
			u.Groups = append(u.Groups, uint32(g))
		}
	}
	slices.Sort(u.Groups)
	return u, nil
}

func lookGroup(gid uint32) (Group, error) {
	found, err := user.LookupGroupId(strconv.FormatUint(uint64(gid), 10))
	if unknown := user.UnknownGroupIdError(""); errors.As(err, &unknown) {
		return Group{GID: gid}, nil
	}
	if err != nil {
		return Group{}, err
	}
	return Group{GID: gid, Known: true, Name: found.Name}, nil
}
