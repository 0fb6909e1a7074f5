package ca

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/wire"
)

// info returns the public information about a token.
func (t *tokenRecord) info(digest []byte) *wire.TokenInfo {
	info := &wire.TokenInfo{Id: tokenID(digest), Part: string(t.Part), Name: t.Name, Made: t.Made, Expires: t.Expires}
	info.Uses, info.Joined, info.Owner = t.Uses, t.Joined, t.Owner
	if t.Used != nil {
		info.Used, info.UsedBy, info.UsedFrom = t.Used.At, t.Used.Node, t.Used.FromHost
	}
	return info
}

// listTokens lists all stored tokens, the newest last.
func (s *certStore) listTokens() (list []*wire.TokenInfo, err error) {
	err = s.db.View(func(tx *boltfile.Tx) error {
		return eachRecord(tx, tokensBucket, func(key []byte, t *tokenRecord) error {
			list = append(list, t.info(key))
			return nil
		})
	})
	slices.SortStableFunc(list, func(a, b *wire.TokenInfo) int { return cmp.Compare(a.Made, b.Made) })
	return list, err
}

// listMembers lists the nodes that have joined and are stored, by name, each with its
// certificate that is valid longest.
func (s *certStore) listMembers() (list []*wire.MemberInfo, err error) {
	newest := map[string]*certRecord{}
	err = s.db.View(func(tx *boltfile.Tx) error {
		return eachRecord(tx, issuedBucket, func(_ []byte, i *certRecord) error {
			if n := newest[i.Name]; n == nil || n.Revoked != 0 && i.Revoked == 0 ||
				(n.Revoked == 0) == (i.Revoked == 0) && n.Expires < i.Expires {
				newest[i.Name] = i
			}
			return nil
		})
	})
	for _, name := range slices.Sorted(maps.Keys(newest)) {
		i := newest[name]
		list = append(list, &wire.MemberInfo{
			Name: i.Name, Part: string(i.Part), Roles: i.Roles, Joined: i.Joined, Expires: i.Expires,
			Revoked: i.Revoked, Reason: i.Reason, From: i.FromHost, Owner: i.Owner,
		})
	}
	return list, err
}

// removeToken removes a token. The node that joined with it stays a member.
func (s *certStore) removeToken(id string) (info *wire.TokenInfo, err error) {
	if _, herr := hex.DecodeString(id + strings.Repeat("0", len(id)%2)); herr != nil || len(id) < 4 {
		return nil, fmt.Errorf("token %q: %w: name it by its id, or at least four letters of it, as roost token list "+
			"shows it", id, roost.Invalid)
	}
	err = s.db.Update(func(tx *boltfile.Tx) error {
		var found []byte
		err := eachRecord(tx, tokensBucket, func(key []byte, t *tokenRecord) error {
			if !strings.HasPrefix(tokenID(key), strings.ToLower(id)) {
				return nil
			}
			if found != nil {
				return fmt.Errorf("token %s: %w: several begin like that: write more of it", id, roost.Invalid)
			}
			found, info = slices.Clone(key), t.info(key)
			return nil
		})
		if err == nil && found == nil {
			err = fmt.Errorf("token %s: %w: roost token list shows those that there are", id, roost.NotFound)
		}
		if err != nil {
			return err
		}
		return tx.Bucket(tokensBucket).Delete(found)
	})
	return info, err
}
