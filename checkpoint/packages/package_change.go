package packages

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/image/imageref"
	"github.com/roost-batch/roost/internal/store"
)

// Caller is who changes a name.
type Caller struct {
	Owner         string // as blobs are charged: a user of one submit node
	User          string // name of that user
	Node          string // that submit node; empty: this machine
	Administrator bool   // may change the names of that node's users, on this machine all
}

// may refuses callers who may not change a name.
func (c Caller) may(p *Package) error {
	if p.Owner == c.Owner || c.Administrator && (c.Node == "" || c.Node == p.Node) {
		return nil
	}
	of := p.User
	if p.Node != "" {
		of += " of " + p.Node
	}
	return fmt.Errorf("package %s: %w: the name is %s's, who used it first; choose another name", p.Name,
		roost.PermissionDenied, of)
}

// check refuses names and users that are none.
func (c Caller) check(name string) error {
	if !imageref.ValidName(name) {
		return fmt.Errorf("package %.100q: %w: a name has up to 100 lower-case letters, digits and . _ -, and begins "+
			"with a letter or digit", name, roost.Invalid)
	}
	if c.Owner == "" || c.User == "" || len(c.User) > 256 || strings.ContainsFunc(c.User, unicode.IsControl) {
		return fmt.Errorf("package %s: %w: %.100q is no user", name, roost.Invalid, c.User)
	}
	return nil
}

// AddVersion makes a version. The same version again with the same digest changes
// nothing, and with another it is roost.Conflict. The caller is charged for the blob.
func (r *Register) AddVersion(c Caller, name, version string, digest store.Digest, size int64, image *ImageSettings) (
	Version, error) {
	if err := c.check(name); err != nil {
		return Version{}, err
	}
	if !imageref.IsVersion(version) {
		return Version{}, fmt.Errorf("package %s@%.100q: %w: a version begins with a digit, such as 1.4, and has up "+
			"to 100 lower-case letters, digits and . _ -", name, version, roost.Invalid)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.nameFor(c, name)
	if err != nil {
		return Version{}, err
	}
	v := p.versionRecord(version)
	switch {
	case v != nil && v.Digest != digest:
		return Version{}, fmt.Errorf("package %s@%s: %w: it was pushed with other contents (%s, now %s), and a "+
			"version never changes: choose another version", name, version, roost.Conflict, v.Digest.Short(),
			digest.Short())
	case v != nil && !v.Removed:
		return *v, nil
	case v != nil:
		v.Removed, v.Charged, v.User, v.Image = false, c.Owner, c.User, image
	case len(p.Versions) >= r.bounds.Versions:
		return Version{}, fmt.Errorf("package %s: %w: it has %d versions already, the most: begin a new name", name,
			roost.Exhausted, len(p.Versions))
	default:
		p.Versions = append(p.Versions, Version{Version: version, Digest: digest, Size: size, Charged: c.Owner,
			User: c.User, Time: time.Now().Unix(), Image: image})
		v = &p.Versions[len(p.Versions)-1]
	}
	if err := r.pins.Pin(digest, pinOwner); err != nil {
		return Version{}, err
	}
	if err := r.write(p); err != nil {
		r.unpinUnused(digest)
		return Version{}, err
	}
	return *v, nil
}

// nameFor returns a copy of a name for a change, or a new one.
func (r *Register) nameFor(c Caller, name string) (*Package, error) {
	if r.names[name] != nil {
		return r.nameOf(c, name)
	}
	total := r.byOwner[c.Owner]
	switch {
	case len(r.names) >= r.bounds.Names:
		return nil, fmt.Errorf("package %s: %w: the server has %d names already, the most", name, roost.Exhausted,
			len(r.names))
	case total != nil && total.names >= r.bounds.OwnerNames:
		return nil, fmt.Errorf("package %s: %w: %s has %d names already, the most: use versions of these", name,
			roost.Exhausted, c.User, total.names)
	}
	return &Package{Name: name, Owner: c.Owner, User: c.User, Node: c.Node, Labels: map[string]string{}}, nil
}

// nameOf returns a copy of a name that the caller may change.
func (r *Register) nameOf(c Caller, name string) (*Package, error) {
	p, err := r.find(name)
	if err == nil {
		err = c.may(p)
	}
	if err != nil {
		return nil, err
	}
	return p.clone(), nil
}

// MoveLabel has a label name a version from now on.
func (r *Register) MoveLabel(c Caller, name, label, version string) (Version, error) {
	if err := c.check(name); err != nil {
		return Version{}, err
	}
	if !imageref.ValidName(label) || imageref.IsVersion(label) {
		return Version{}, fmt.Errorf("package %s@%.100q: %w: a label begins with a letter, such as live: a version "+
			"never moves", name, label, roost.Invalid)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.nameOf(c, name)
	if err != nil {
		return Version{}, err
	}
	to, err := p.Resolve(version) // another label means the version that it names now
	if err != nil {
		return Version{}, err
	}
	from, moved := p.Labels[label]
	switch {
	case from == to.Version:
		return *to, nil
	case !moved && len(p.Labels) >= r.bounds.Labels:
		return Version{}, fmt.Errorf("package %s: %w: it has %d labels already, the most: remove one (roost package "+
			"rm)", name, roost.Exhausted, len(p.Labels))
	}
	p.Labels[label] = to.Version
	r.note(p, Move{label, from, to.Version, c.User, time.Now().Unix()})
	return *to, r.write(p)
}

// RemoveLabel ends a label.
func (r *Register) RemoveLabel(c Caller, name, label string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.nameOf(c, name)
	if err != nil {
		return err
	}
	from, ok := p.Labels[label]
	if !ok {
		return fmt.Errorf("package %s: %w: it has no label %.100q", name, roost.NotFound, label)
	}
	delete(p.Labels, label)
	r.note(p, Move{Label: label, From: from, User: c.User, Time: time.Now().Unix()})
	return r.write(p)
}

// RemoveVersion ends a version that no label names, and returns it. Its text can never
// mean other contents.
func (r *Register) RemoveVersion(c Caller, name, version string) (Version, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.nameOf(c, name)
	if err != nil {
		return Version{}, err
	}
	v := p.Version(version)
	if v == nil {
		_, err := p.Resolve(version)
		return Version{}, err
	}
	for label, at := range p.Labels {
		if at == version {
			return Version{}, fmt.Errorf("package %s@%s: %w: its label %s names it: move or remove the label first",
				name, version, roost.Conflict, label)
		}
	}
	v.Removed, v.Image = true, nil
	if err := r.write(p); err != nil {
		return Version{}, err
	}
	return *v, r.unpinUnused(v.Digest)
}

// unpinUnused unpins a blob that no version names.
func (r *Register) unpinUnused(digest store.Digest) error {
	if len(r.uses[digest]) > 0 {
		return nil
	}
	return r.pins.Unpin(digest, pinOwner)
}

// note adds to the history, and forgets what is older than its bound.
func (r *Register) note(p *Package, m Move) {
	p.History = append(p.History, m)
	if over := len(p.History) - r.bounds.Moves; over > 0 {
		p.History = slices.Delete(p.History, 0, over)
		p.Forgotten += over
	}
}

// write makes a changed name durable, and its own from then on. r.mu is held.
func (r *Register) write(p *Package) error {
	text, err := p.encode()
	if err != nil {
		return err
	}
	size, before := int64(len(text)), int64(0)
	if old := r.names[p.Name]; old != nil {
		before = old.size
	}
	var own int64
	if o := r.byOwner[p.Owner]; o != nil {
		own = o.bytes
	}
	if grows := size > before; grows && (size > r.bounds.Bytes || own-before+size > r.bounds.OwnerBytes ||
		r.total-before+size > r.bounds.TotalBytes) {
		return fmt.Errorf("package %s: %w: its versions, labels and settings are too many: %v of at most %v, and "+
			"those of its owner %v of at most %v", p.Name, roost.Exhausted, roost.Bytes(size),
			roost.Bytes(r.bounds.Bytes), roost.Bytes(own-before+size), roost.Bytes(r.bounds.OwnerBytes))
	}
	if err := atomicfile.WriteDurable(r.path(p.Name), text, fileMode); err != nil {
		return fmt.Errorf("package %s: %w: %w", p.Name, roost.Exhausted, err)
	}
	r.enter(p, size)
	return nil
}
