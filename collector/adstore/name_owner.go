package adstore

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
)

// nodeIdentity is a node by its certificate.
type nodeIdentity struct{ node, serial string }

// NodeWithSameName returns the certificate of the node that is known by the name of that
// one in other letters, if there is such a node.
func (s *Store) NodeWithSameName(node string) (serial string, ok bool) {
	k, known := s.nodesByName[strings.ToLower(node)]
	return k.serial, known && k.node != node
}

// ReleaseName has a name belong to nobody: the node that had it is a member of the pool
// no more.
func (s *Store) ReleaseName(node string) { delete(s.nodesByName, strings.ToLower(node)) }

// checkNameOwner settles whose a name is, before anything else of an update counts, and
// returns the ad of that name that the update is to be compared with.
//
// Naively whoever may use a name replaces what is there, if he is the newer one; and he
// says himself how new he is. But "slot1.n1" may be a startd of n1, or a node. So a name
// that is a node's is that node's, from when its certificate was first seen; any other
// name is whoever's came first, for as long as that ad lives. A node that comes after
// another has taken its name gets it back at once, and the other's ad goes. Names that
// differ by case only are one.
func (s *Store) checkNameOwner(old *nameSlot, u AdUpdate) (*nameSlot, error) {
	if u.Node != "" {
		key := strings.ToLower(u.Node)
		if k := s.nodesByName[key].node; k == u.Node || k == "" && len(s.nodesByName) < s.limits.AdsPerType {
			s.nodesByName[key] = nodeIdentity{u.Node, u.Serial}
		}
	}
	owner := s.nodesByName[strings.ToLower(u.Name)].node
	switch {
	case u.Node == "": // a daemon of this host and of the collector's own user
	case owner != "" && owner != u.Node:
		return old, fmt.Errorf("ad of %s %q: %w: that is the name of the node %s, and names are compared without "+
			"regard to case", u.Type, u.Name, roost.PermissionDenied, owner)
	case old != nil && old.node != u.Node && owner == u.Node:
		s.removeAd(old)
		return nil, nil
	case old != nil && old.node != u.Node:
		return old, fmt.Errorf("ad of %s %q: %w: the name is taken by %s", u.Type, u.Name, roost.PermissionDenied,
			ownerText(old.node))
	}
	if old != nil && old.Name != u.Name {
		return old, fmt.Errorf("ad of %s %q: %w: there is one of %q, and names are compared without regard to case",
			u.Type, u.Name, roost.Conflict, old.Name)
	}
	return old, nil
}

// ownerText names a node for people.
func ownerText(node string) string {
	if node == "" {
		return "a daemon of the collector's host"
	}
	return "the node " + node
}
