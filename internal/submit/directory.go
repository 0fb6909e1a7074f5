package submit

import (
	"fmt"
	"path"
	"strings"

	"github.com/roost-batch/roost"
)

// readDirectory reads the directory that relative paths start from, and that the task runs in where it can.
func (b *builder) readDirectory() {
	b.iwd = fixedText(b.p.opts.Dir, b.block.DefRange())
	if a, ok := b.attr("directory", b.roots()...); ok {
		t, ok := b.text(a.Expr, "directory")
		if !ok || b.refuseNumber(t, "a directory") {
			return
		}
		b.iwd = b.absoluteText(t, b.p.opts.Dir)
		b.checkDirectory()
	}
	b.ad.SetString(roost.AttrIwd, b.iwd.ad())
}

func (b *builder) checkDirectory() {
	where, fixed := b.iwd.fixed()
	if !fixed || b.p.opts.Files == nil {
		return
	}
	info, err := b.p.opts.Files.Stat(where)
	switch {
	case err != nil:
		b.p.report(missing(&b.iwd.at, fmt.Sprintf("the directory %q is not there", shorten(where)), "Make it with mkdir -p, or check the name"+b.similar(where)+"."))
	case !info.IsDir():
		b.p.report(missing(&b.iwd.at, fmt.Sprintf("%q is not a directory", shorten(where)), "The task's working directory has to be one."))
	}
}

// absoluteText makes a path that may differ between tasks absolute, by its first piece.
func (b *builder) absoluteText(t text, dir string) text {
	if s, fixed := t.fixed(); fixed {
		return fixedText(absolute(s, dir, b.p.opts.Home), t.at)
	}
	first := t.pieces[0]
	if first.column == "" && strings.HasPrefix(first.fixed, "/") {
		return t
	}
	if first.column == "" && strings.HasPrefix(first.fixed, "~/") {
		rest := append([]piece{{fixed: first.fixed[1:]}}, t.pieces[1:]...)
		return text{rest, t.at}.with(b.p.opts.Home, "")
	}
	if first.column != "" && !has([]string{taskIndex, arrayIndex, jobSeq}, first.column) { // one that may hold absolute paths
		values := make([]string, b.tasks.count)
		outside := false
		for i := range values {
			s := b.textOfTask(t, i)
			values[i] = absolute(s, dir, b.p.opts.Home)
			outside = outside || strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~")
		}
		if outside {
			return text{[]piece{{column: b.addColumn("path", "", values)}}, t.at}
		}
	}
	return t.with(strings.TrimSuffix(dir, "/")+"/", "")
}

// below makes a path absolute from the job's directory.
func (b *builder) below(t text) text {
	if iwd, fixed := b.iwd.fixed(); fixed {
		return b.absoluteText(t, iwd)
	}
	if s, fixed := t.fixed(); fixed && (path.IsAbs(s) || strings.HasPrefix(s, "~")) {
		return b.absoluteText(t, "/")
	}
	pieces := append([]piece(nil), b.iwd.pieces...)
	pieces = append(pieces, piece{fixed: "/"})
	return text{append(pieces, t.pieces...), t.at}
}
