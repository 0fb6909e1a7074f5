package image

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/image/erofs"
)

// maxLinks is how many symbolic links a path may go through, as for the kernel.
const maxLinks = 40

// makeDirectories returns the directory of a path, and makes what is missing. Layers go
// through symbolic links of the layers below: "lib/x" where "lib" leads to "usr/lib". A
// link is followed within the tree, so it never leads out of it.
func (t *layerTree) makeDirectories(words []string) (*erofs.Node, error) {
	links := 0
	path := []*erofs.Node{t.root}
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		dir := path[len(path)-1]
		if word == ".." { // of a link's target
			if len(path) == 1 {
				return nil, fmt.Errorf("%w: a symbolic link on the way leaves the image", roost.Invalid)
			}
			path = path[:len(path)-1]
			continue
		}
		n := dir.Children[word]
		switch {
		case n == nil:
			if err := t.countEntry(); err != nil {
				return nil, err
			}
			n = erofs.NewDirectory(0o755)
			t.put(dir, word, n)
			path = append(path, n)
		case n.IsDirectory():
			path = append(path, n)
		case n.IsSymlink():
			if links++; links > maxLinks {
				return nil, fmt.Errorf("%w: too many symbolic links are on the way", roost.Invalid)
			}
			if strings.HasPrefix(n.Target, "/") {
				path = path[:1]
			}
			words = append(targetWords(n.Target), words...)
		default:
			return nil, fmt.Errorf("%w: %.300q on the way is no directory", roost.Invalid, word)
		}
		if len(path) > t.limits.Depth+1 {
			return nil, fmt.Errorf("%w: it is in more than %d directories", roost.Exhausted, t.limits.Depth)
		}
	}
	return path[len(path)-1], nil
}

// targetWords returns the names in a target.
func targetWords(target string) (words []string) {
	for word := range strings.SplitSeq(target, "/") {
		if word != "" && word != "." {
			words = append(words, word)
		}
	}
	return words
}

// linkTarget returns the node to which a hard link adds a name. It is in the tree
// already.
func (t *layerTree) linkTarget(target string) (*erofs.Node, error) {
	words, err := t.splitPath(target)
	if err != nil {
		return nil, fmt.Errorf("hard link to %.300q: %w", target, err)
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("%w: a hard link to the root", roost.Invalid)
	}
	entries := t.entries
	dir, err := t.makeDirectories(words[:len(words)-1])
	if err == nil && t.entries != entries {
		err = fmt.Errorf("%w: there is no such file", roost.Invalid)
	}
	if err != nil {
		return nil, fmt.Errorf("hard link to %.300q: %w", target, err)
	}
	switch n := dir.Children[words[len(words)-1]]; {
	case n == nil:
		return nil, fmt.Errorf("hard link to %.300q: %w: there is no such file", target, roost.Invalid)
	case n.IsDirectory():
		return nil, fmt.Errorf("hard link to %.300q: %w: it is a directory", target, roost.Invalid)
	default:
		return n, nil
	}
}
