package importlint

import (
	"bytes"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// The bounds of text. A tab counts as four columns.
const (
	maxCodeWidth     = 120
	maxCommentWidth  = 90
	maxFunctionLines = 70
	maxSentenceWords = 20
)

// TestDocComments holds the form of doc comments: they begin with the identifier below
// them, and their first sentence is short.
func TestDocComments(t *testing.T) {
	for _, s := range sources(t) {
		if ast.IsGenerated(s.File) {
			continue
		}
		documented(s.File, func(name string, doc *ast.CommentGroup) {
			first := firstSentence(doc.Text())
			words := strings.Fields(first)
			if len(words) == 0 { // a directive
				return
			}
			if !namesIdentifier(words, name) {
				t.Errorf("%s: the comment of %s begins with %q", s.position(doc), name, words[0])
			}
			if len(words) > maxSentenceWords {
				t.Errorf("%s: the first sentence on %s has %d words: %s", s.position(doc), name, len(words), first)
			}
		})
	}
}

// documented calls f for each declaration that has a comment. A group of constants or
// variables is left out: its comments are about the group.
func documented(file *ast.File, f func(name string, doc *ast.CommentGroup)) {
	call := func(id *ast.Ident, docs ...*ast.CommentGroup) {
		for _, doc := range docs {
			if doc != nil {
				f(id.Name, doc)
				return
			}
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			call(d.Name, d.Doc)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				outer := d.Doc
				if len(d.Specs) > 1 {
					outer = nil // it is about all of them
				}
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					call(spec.Name, spec.Doc, outer)
				case *ast.ValueSpec:
					if len(spec.Names) == 1 && len(d.Specs) == 1 {
						call(spec.Names[0], spec.Doc, outer)
					}
				}
			}
		}
	}
}

// namesIdentifier reports whether a sentence begins with the identifier, as in
// "Queue is", "A Queue is" or "Queue's jobs are".
func namesIdentifier(words []string, name string) bool {
	if len(words) > 1 && slices.Contains([]string{"A", "An", "The"}, words[0]) {
		words = words[1:]
	}
	first := strings.TrimRight(words[0], ",.:;")
	return first == name || strings.TrimSuffix(first, "'s") == name
}

// firstSentence is the text to the first full stop that ends a sentence.
func firstSentence(text string) string {
	text, _, _ = strings.Cut(text, "\n\n")
	for i := 3; i < len(text)-1; i++ {
		if text[i] == '.' && (text[i+1] == ' ' || text[i+1] == '\n') && text[i-2] != '.' {
			return text[:i+1]
		}
	}
	return strings.TrimSpace(text)
}

// TestWidths holds the width of code and of comments.
func TestWidths(t *testing.T) {
	allowed, used := allowedWidths(), map[string]bool{}
	for _, s := range sources(t) {
		if ast.IsGenerated(s.File) {
			continue
		}
		path := filepath.Join(s.pkg, s.name)
		src, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		raw := rawStringLines(s)
		for i, line := range bytes.Split(src, []byte("\n")) {
			text := strings.ReplaceAll(string(line), "\t", "    ")
			width, most := utf8.RuneCountInString(text), maxCodeWidth
			comment := strings.TrimSpace(text)
			if strings.HasPrefix(comment, "// ") && !strings.HasPrefix(comment, "//  ") { // not preformatted
				most = maxCommentWidth
			}
			if width <= most || raw[i+1] {
				continue
			}
			if allowed[path] != "" {
				used[path] = true
				continue
			}
			t.Errorf("%s:%d has %d columns, %d at most", path, i+1, width, most)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(allowed)) {
		if !used[path] {
			t.Errorf("%s is allowed to be wide (%s), and is not", path, allowed[path])
		}
	}
}

// rawStringLines are the lines of a file that raw strings cover. A line break would
// change the ads and scripts in them.
func rawStringLines(s *sourceFile) map[int]bool {
	lines := map[int]bool{}
	ast.Inspect(s.File, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && lit.Value[0] == '`' {
			for l := s.Position(lit.Pos()).Line; l <= s.Position(lit.End()).Line; l++ {
				lines[l] = true
			}
		}
		return true
	})
	return lines
}

// TestFunctionLines holds the length of functions: a screen.
func TestFunctionLines(t *testing.T) {
	for _, s := range nonTestFiles(t) {
		if ast.IsGenerated(s.File) {
			continue
		}
		for _, d := range s.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || isTable(f) {
				continue
			}
			if lines := s.Position(f.End()).Line - s.Position(f.Pos()).Line + 1; lines > maxFunctionLines {
				t.Errorf("%s: %s has %d lines, %d at most", s.position(f), f.Name.Name, lines, maxFunctionLines)
			}
		}
	}
}

// isTable reports whether a function does nothing but return a literal.
func isTable(f *ast.FuncDecl) bool {
	if f.Body == nil || len(f.Body.List) == 0 {
		return false
	}
	_, returns := f.Body.List[len(f.Body.List)-1].(*ast.ReturnStmt)
	for _, s := range f.Body.List[:len(f.Body.List)-1] {
		if d, ok := s.(*ast.DeclStmt); !ok || d.Decl.(*ast.GenDecl).Tok != token.CONST {
			return false
		}
	}
	return returns
}

// TestPlaces holds the order of packages against the tree: no place is without a package.
func TestPlaces(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packageOrders() {
		if seen[p.path] {
			t.Errorf("package %s has two places", p.path)
		}
		seen[p.path] = true
		if files, _ := filepath.Glob(filepath.Join(root, p.path, "*.go")); len(files) == 0 {
			t.Errorf("package %s has a place, and there is no such package", p.path)
		}
	}
}
