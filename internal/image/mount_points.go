package image

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-batch/roost/internal/image/erofs"
)

// addMountPoints adds what each sandbox mounts over, where an image lacks it: the file
// system is read-only later. Files of the network's names are replaced if they are links,
// because the files of the machine are shown there.
func (t *layerTree) addMountPoints() error {
	t.fresh = map[*erofs.Node]map[string]bool{}
	for _, path := range []string{"dev", "proc", "sys", "tmp", "run", "run/secrets", "etc", "var/tmp", "home", "root"} {
		n, err := t.makeDirectories(strings.Split(path, "/"))
		if err != nil {
			return fmt.Errorf("/%s, which each sandbox needs: %w", path, err)
		}
		if (path == "tmp" || path == "var/tmp") && n.Mtime == 0 && n.Mode == erofs.TypeDirectory|0o755 {
			n.Mode = erofs.TypeDirectory | 0o1777
		}
	}
	etc, err := t.makeDirectories([]string{"etc"})
	if err != nil {
		return fmt.Errorf("/etc: %w", err)
	}
	for _, name := range []string{"resolv.conf", "hosts", "passwd", "group", "hostname"} {
		if n := etc.Children[name]; n == nil || n.IsSymlink() {
			etc.Children[name] = &erofs.Node{Mode: erofs.TypeRegular | 0o644}
		}
	}
	return nil
}

// noteCases notes directories with names that differ in case only.
func (t *layerTree) noteCases(path string, dir *erofs.Node) {
	seen := make(map[string]bool, len(dir.Children))
	for _, name := range slices.Sorted(maps.Keys(dir.Children)) {
		if lower := strings.ToLower(name); seen[lower] {
			t.dropped.cases.add(path + "/" + name)
		} else {
			seen[lower] = true
		}
		if n := dir.Children[name]; n.IsDirectory() {
			t.noteCases(path+"/"+name, n)
		}
	}
}

// droppedParts is what an image has and its file system has not, or has in another way.
type droppedParts struct {
	devices, xattrs, cases, setuid, private partList
}

// partList counts parts, and has the first of them.
type partList struct {
	count int
	first string
}

func (p *partList) add(name string) {
	if p.count++; p.count == 1 {
		p.first = name
	}
}

// notes returns a sentence for each kind of part.
func (d droppedParts) notes() (all []string) {
	for _, k := range []struct {
		list partList
		text string
	}{
		{d.devices, "devices and pipes are left out; sandboxes have their own"},
		{d.xattrs, "extended attributes are left out: only those of users are shown, 2 KiB for a file"},
		{d.setuid, "set-user-ID bits are left out"},
		{d.private, "files were not for everybody, and in a package they are"},
		{d.cases, "names differ only in case from others"},
	} {
		if k.list.count > 0 {
			all = append(all, fmt.Sprintf("%d %s; the first is %.300q", k.list.count, k.text, k.list.first))
		}
	}
	return all
}
