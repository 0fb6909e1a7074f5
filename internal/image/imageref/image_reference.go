// Package imageref parses the names that users give to container images and packages.
package imageref

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/lazyregexp"
)

// Source is where an image comes from.
type Source string

// The sources of images.
const (
	Registry Source = "docker"         // docker://HOST/NAME[:TAG|@DIGEST]
	Layout   Source = "oci"            // oci:DIRECTORY[:TAG], an OCI image layout
	Archive  Source = "docker-archive" // docker-archive:FILE, as docker save and podman save write
	SIF      Source = "sif"            // FILE.sif, an image of Apptainer
	SquashFS Source = "squashfs"       // FILE.sqsh, an image of enroot
	Dir      Source = "dir"            // dir:DIRECTORY, an unpacked root
	Stored   Source = "stored"         // NAME@LABEL, or the digest of what is in the store of the pool
)

// Reference is the name of an image.
type Reference struct {
	Source Source
	Text   string // as the user wrote it
	Name   string // of a registry's image, or of a stored one
	Path   string // of a layout, an archive, a file or a directory
	Tag    string // of a layout's image; empty: it has only one
	Label  string // of a stored one
	Digest string // of a stored one, instead of name and label
}

func (r Reference) String() string { return r.Text }

// forms is what a wrong reference is answered with.
const forms = `write "docker://HOST/NAME:TAG", "oci:DIRECTORY:TAG", "docker-archive:FILE", "FILE.sif", "FILE.sqsh", ` +
	`"dir:DIRECTORY" or "NAME@LABEL"`

var (
	registryName = lazyregexp.New(`^[a-zA-Z0-9][a-zA-Z0-9.\-]*(:[0-9]+)?(/[a-zA-Z0-9][a-zA-Z0-9._\-]*)*` +
		`(:[A-Za-z0-9_][A-Za-z0-9_.\-]{0,127})?(@sha256:[0-9a-f]{64})?$`)
	storedName = lazyregexp.New(`^[a-z0-9][a-z0-9._\-]{0,99}$`)
	digestForm = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)
)

// Parse reads a reference. A wrong one is roost.Invalid, and says what is right.
func Parse(text string) (Reference, error) {
	r := Reference{Text: text}
	switch {
	case strings.ContainsAny(text, "\x00\n") || len(text) > 4096:
		return r, fmt.Errorf("image %.80q: %w: %s", text, roost.Invalid, forms)
	case strings.HasPrefix(text, "docker://"):
		r.Source, r.Name = Registry, strings.TrimPrefix(text, "docker://")
		if !registryName().MatchString(r.Name) {
			return r, fmt.Errorf("image %q: %w: %q is not HOST/NAME:TAG or HOST/NAME@sha256:DIGEST", text,
				roost.Invalid, r.Name)
		}
	case strings.HasPrefix(text, "oci:"):
		r.Source, r.Path = Layout, strings.TrimPrefix(text, "oci:")
		if at := strings.LastIndexByte(r.Path, ':'); at > strings.LastIndexByte(r.Path, '/') {
			r.Path, r.Tag = r.Path[:at], r.Path[at+1:]
		}
	case strings.HasPrefix(text, "docker-archive:"):
		r.Source, r.Path = Archive, strings.TrimPrefix(text, "docker-archive:")
	case strings.HasPrefix(text, "dir:"):
		r.Source, r.Path = Dir, strings.TrimPrefix(text, "dir:")
	case strings.HasSuffix(text, ".sif"):
		r.Source, r.Path = SIF, text
	case strings.HasSuffix(text, ".sqsh") || strings.HasSuffix(text, ".squashfs"):
		r.Source, r.Path = SquashFS, text
	case digestForm().MatchString(text):
		r.Source, r.Digest = Stored, text
		return r, nil
	default:
		name, label, ok := strings.Cut(text, "@")
		if !ok || !ValidName(name) || !ValidName(label) {
			return r, fmt.Errorf("image %q: %w: %s", text, roost.Invalid, forms)
		}
		r.Source, r.Name, r.Label = Stored, name, label
		return r, nil
	}
	if r.Source != Registry && r.Path == "" {
		return r, fmt.Errorf("image %q: %w: it names no file", text, roost.Invalid)
	}
	return r, nil
}

// ValidName reports whether a text can be the name or the label of a stored image.
func ValidName(text string) bool { return storedName().MatchString(text) }

// IsVersion reports whether a text is a version of a stored name, which never changes. It
// begins with a digit. A label, which moves, begins with a letter.
func IsVersion(text string) bool { return ValidName(text) && text[0] <= '9' }

// ValidDigest reports whether a text is the digest of a stored image.
func ValidDigest(text string) bool { return digestForm().MatchString(text) }

// WithPath returns the text of the reference with another path of its file or directory.
func (r Reference) WithPath(path string) string {
	switch {
	case r.Source == SIF || r.Source == SquashFS:
		return path
	case r.Path == "":
		return r.Text
	case r.Tag != "":
		return string(r.Source) + ":" + path + ":" + r.Tag
	}
	return string(r.Source) + ":" + path
}
