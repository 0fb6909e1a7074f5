package imageref

import (
	"fmt"
	"path"
	"strings"

	"github.com/roost-batch/roost"
)

// PackageMount says which package a task has, and where.
type PackageMount struct {
	Reference string // NAME@LABEL, NAME@VERSION or a digest
	Target    string // in the sandbox
}

// String returns the mount as ParsePackageMount reads it.
func (m PackageMount) String() string { return m.Reference + ":" + m.Target }

// packageForms is what a wrong mount of a package is answered with.
const packageForms = `write "NAME@LABEL:/where"`

// ParsePackageMount reads NAME@LABEL:/where. A digest may take the place of the name.
func ParsePackageMount(text string) (m PackageMount, err error) {
	reference, target, ok := strings.Cut(text, ":/")
	if !ok {
		return m, fmt.Errorf("package %.300q: %w: %s", text, roost.Invalid, packageForms)
	}
	m = PackageMount{Reference: reference, Target: "/" + target}
	if r, err := Parse(reference); err != nil || r.Source != Stored {
		return m, fmt.Errorf("package %.300q: %w: %.300q is not NAME@LABEL or NAME@VERSION: %s", text, roost.Invalid,
			reference, packageForms)
	}
	m.Target, err = CheckPackageTarget(m.Target)
	return m, err
}

// reservedTargets are directories of a sandbox that packages cannot be in.
var reservedTargets = []string{"/proc", "/sys", "/dev", "/etc", "/run", "/tmp", "/var/run"}

// CheckPackageTarget returns where a package is to be, or why it cannot be there.
func CheckPackageTarget(target string) (string, error) {
	if !path.IsAbs(target) || path.Clean(target) != "/"+strings.Trim(target, "/") ||
		strings.ContainsAny(target, "\x00\n") || len(target) > 1000 {
		return "", fmt.Errorf("package at %.300q: %w: it is no absolute path without \"..\", such as /app", target,
			roost.Invalid)
	}
	target = path.Clean(target)
	if target == "/" {
		return "", fmt.Errorf("package at /: %w: the machine's files are there: name a directory, such as /app",
			roost.Invalid)
	}
	for _, own := range reservedTargets {
		if isWithin(own, target) {
			return "", fmt.Errorf("package at %.300s: %w: a sandbox has its own %s: name another directory, such as "+
				"/app", target, roost.Invalid, own)
		}
	}
	return target, nil
}

// CheckPackageTargets refuses packages that would be at the same place, or one in the
// other.
func CheckPackageTargets(mounts []PackageMount) error {
	for i, m := range mounts {
		for _, other := range mounts[:i] {
			if isWithin(m.Target, other.Target) || isWithin(other.Target, m.Target) {
				return fmt.Errorf("packages %s and %s: %w: they would be at %.300s and %.300s: choose directories "+
					"beside each other", other.Reference, m.Reference, roost.Invalid, other.Target, m.Target)
			}
		}
	}
	return nil
}

// isWithin reports whether a path is a directory, or is in it.
func isWithin(dir, path string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
