package image

import (
	"fmt"
	"io/fs"

	"github.com/roost-batch/roost"
)

// MaxPackageBytes is the most bytes that the files of a package have.
const MaxPackageBytes = 20 << 30

// PackageLimits are the limits of packages.
func PackageLimits() Limits {
	l := DefaultLimits()
	l.Bytes = MaxPackageBytes
	return l
}

// packagePermissions returns the permissions of a file in a package. All of its files are
// root's, and tasks are other users', so what its owner could read everybody can.
func (d *droppedParts) packagePermissions(name string, info fs.FileInfo) uint16 {
	if info.Mode().IsRegular() && info.Mode().Perm()&0o004 == 0 {
		d.private.add(name)
	}
	if info.IsDir() || info.Mode().Perm()&0o111 != 0 {
		return 0o555
	}
	return 0o444
}

// refuse says what a package may not have.
func (d *droppedParts) refuse(anyCase bool) error {
	switch {
	case d.devices.count > 0:
		return fmt.Errorf("%w: %s is a device, a pipe or a socket, of %d such files: a package has files, directories "+
			"and links: remove them", roost.Invalid, d.devices.first, d.devices.count)
	case d.cases.count > 0 && !anyCase:
		return fmt.Errorf("%w: %s differs from another name only in case, as %d names do: rename them, or say "+
			"--any-case", roost.Invalid, d.cases.first, d.cases.count)
	}
	return nil
}
