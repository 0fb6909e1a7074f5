package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/packages"
	"github.com/roost-batch/roost/internal/identity/peer"
	blobstore "github.com/roost-batch/roost/internal/store"
	"github.com/roost-batch/roost/internal/wire"
)

// Packages are blobs with names. Everybody may know them; a name is changed by the user
// who used it first, of the node in the caller's certificate. So a submit node, whatever
// it says of its users, changes no name of another's.

// packageCaller returns who changes a name.
func packageCaller(ctx context.Context, req *wire.PackageChange) (c packages.Caller, err error) {
	c = packages.Caller{User: req.GetUser(), Administrator: req.GetAdministrator()}
	if c.Owner, err = blobOwner(ctx, req.GetUid()); err != nil {
		return c, err
	}
	if p, _ := peer.FromContext(ctx); !p.Local {
		c.Node = p.Name
	}
	return c, nil
}

// packageRegister returns the names of the server.
func (s *Service) packageRegister() (*packages.Register, error) {
	if s.packages == nil {
		return nil, fmt.Errorf("package: %w: this server has none", roost.NotFound)
	}
	return s.packages, nil
}

// SetPackage makes a version, moves a label, or removes one of them. When it answers, the
// change is on the disk.
func (s *Service) SetPackage(ctx context.Context, req *wire.PackageChange) (*wire.PackageVersion, error) {
	register, err := s.packageRegister()
	if err != nil {
		return nil, err
	}
	caller, err := packageCaller(ctx, req)
	if err != nil {
		return nil, err
	}
	s.namesMu.Lock()
	defer s.namesMu.Unlock()
	var v packages.Version
	switch name := req.GetName(); {
	case req.GetRemove() && req.GetLabel() != "":
		err = register.RemoveLabel(caller, name, req.GetLabel())
	case req.GetRemove():
		v, err = s.removeVersion(register, caller, name, req.GetVersion())
	case req.GetLabel() != "":
		v, err = register.MoveLabel(caller, name, req.GetLabel(), req.GetVersion())
	default:
		v, err = s.addVersion(register, caller, req)
	}
	if err != nil {
		return nil, err
	}
	return wireVersion(v), nil
}

// addVersion makes a version of a blob for which its user is charged.
func (s *Service) addVersion(register *packages.Register, caller packages.Caller, req *wire.PackageChange) (
	v packages.Version, err error) {
	digest, err := blobstore.ParseDigest(req.GetDigest())
	if err != nil {
		return v, err
	}
	size, charged := s.blobs.OwnedSize(digest, caller.Owner)
	if !charged {
		return v, fmt.Errorf("package %.100s@%.100s: %w: nobody has pushed %s for %.100s: roost package push does both",
			req.GetName(), req.GetVersion(), roost.NotFound, digest.Short(), caller.User)
	}
	if n := proto.Size(req.GetImage()); n > maxImageSettings {
		return v, fmt.Errorf("package %.100s@%.100s: %w: environment and entry point of the image have %d bytes, and "+
			"%d is the most", req.GetName(), req.GetVersion(), roost.Exhausted, n, maxImageSettings)
	}
	var image *packages.ImageSettings
	if i := req.GetImage(); i != nil {
		image = &packages.ImageSettings{Environment: i.GetEnvironment(), Entrypoint: i.GetEntrypoint(),
			Command: i.GetCommand(), Workdir: i.GetWorkdir(), User: i.GetUser()}
	}
	return register.AddVersion(caller, req.GetName(), req.GetVersion(), digest, size, image)
}

// maxImageSettings is the most bytes of what a container image says of its programs.
const maxImageSettings = 64 << 10

// removeVersion ends a version, and the charge for its blob if that has no other name of
// the same user's.
func (s *Service) removeVersion(register *packages.Register, caller packages.Caller, name, version string) (
	packages.Version, error) {
	v, err := register.RemoveVersion(caller, name, version)
	if err != nil || register.NameOf(v.Digest, v.Charged) != "" {
		return v, err
	}
	if _, err := s.blobs.Disown(v.Digest, v.Charged); err != nil && !errors.Is(err, roost.NotFound) {
		return v, err
	}
	return v, nil
}

// removable refuses to end a user's charge for a blob that has a name.
func (s *Service) removable(digest blobstore.Digest, owner string) error {
	if s.packages == nil {
		return nil
	}
	if name := s.packages.NameOf(digest, owner); name != "" {
		return fmt.Errorf("blob %s: %w: it is %s: remove that first, with roost package rm %s", digest.Short(),
			roost.Conflict, name, name)
	}
	return nil
}

// maxListBytes is about how many bytes of names are in one answer.
const maxListBytes = 32 << 10

// ListPackages answers what names there are, or what one of them means.
func (s *Service) ListPackages(_ context.Context, req *wire.PackageQuery) (*wire.PackageList, error) {
	register, err := s.packageRegister()
	if err != nil {
		return nil, err
	}
	list := &wire.PackageList{}
	if req.GetName() == "" {
		size := 0
		list.More = register.List(req.GetAfter(), func(p *packages.Package) bool {
			if size > maxListBytes {
				return false
			}
			w := wirePackage(p)
			size += proto.Size(w)
			list.Packages = append(list.Packages, w)
			return true
		})
		return list, nil
	}
	p, err := register.Find(req.GetName())
	if err != nil {
		return nil, err
	}
	w := wirePackage(p)
	list.Packages = append(list.Packages, w)
	if req.GetLabel() != "" {
		v, err := p.Resolve(req.GetLabel())
		if err != nil {
			return nil, err
		}
		w.Labels, w.Versions = nil, append(w.Versions, wireVersion(*v))
		return list, nil
	}
	for _, v := range p.Versions {
		if !v.Removed {
			w.Versions = append(w.Versions, wireVersion(v))
		}
	}
	for _, m := range p.History {
		w.History = append(w.History, &wire.PackageMove{Label: m.Label, From: m.From, To: m.To, User: m.User,
			TimeS: m.Time})
	}
	return list, nil
}

// wirePackage returns a name with its labels.
func wirePackage(p *packages.Package) *wire.Package {
	w := &wire.Package{Name: p.Name, Owner: p.User, Node: p.Node, ForgottenMoves: uint32(p.Forgotten)}
	for _, v := range p.Versions {
		if !v.Removed {
			w.VersionCount++
		}
	}
	for _, label := range slices.Sorted(maps.Keys(p.Labels)) {
		w.Labels = append(w.Labels, &wire.PackageLabel{Label: label, Version: p.Labels[label]})
	}
	return w
}

func wireVersion(v packages.Version) *wire.PackageVersion {
	w := &wire.PackageVersion{Version: v.Version, Digest: string(v.Digest), Size: v.Size, User: v.User, TimeS: v.Time}
	if i := v.Image; i != nil {
		w.Image = &wire.ImageSettings{Environment: i.Environment, Entrypoint: i.Entrypoint, Command: i.Command,
			Workdir: i.Workdir, User: i.User}
	}
	return w
}
