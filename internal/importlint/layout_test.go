package importlint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	module       = "github.com/roost-batch/roost"
	root         = "../.."
	maxFileLines = 500 // lines of a file: STYLE asks for 350 at most, and leaves room for a reason
)

// sourceFile is one Go file.
type sourceFile struct {
	pkg  string // its directory below the module
	name string
	test bool
	*ast.File
	*token.FileSet
}

// position names a place for people.
func (s *sourceFile) position(n ast.Node) string {
	return s.pkg + "/" + s.name + ":" + strconv.Itoa(s.Position(n.Pos()).Line)
}

// parseSources parses every Go file of the module, once for all tests.
var parseSources = sync.OnceValues(func() (all []*sourceFile, err error) {
	fset := token.NewFileSet()
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (name == "testdata" || name == "bin" || strings.HasPrefix(name, ".")) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		all = append(all, &sourceFile{pkg, d.Name(), strings.HasSuffix(path, "_test.go"), file, fset})
		return nil
	})
	return all, err
})

// sources returns every Go file of the module.
func sources(t *testing.T) []*sourceFile {
	t.Helper()
	all, err := parseSources()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(all)
}

// nonTestFiles returns the files that are no tests. Tests may import what they like.
func nonTestFiles(t *testing.T) []*sourceFile {
	return slices.DeleteFunc(sources(t), func(s *sourceFile) bool { return s.test })
}

// imports calls f for each import of the file.
func (s *sourceFile) imports(f func(spec *ast.ImportSpec, path string)) {
	for _, spec := range s.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		f(spec, path)
	}
}

// modulePackage returns the directory of a package of this module.
func modulePackage(path string) (string, bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

func packageRank(pkg string) int {
	return slices.IndexFunc(packageOrders(), func(p packageOrder) bool { return p.path == pkg })
}

// daemonTree returns the daemon whose tree holds the package.
func daemonTree(pkg string) string {
	for _, d := range daemons() {
		if pkg == d || strings.HasPrefix(pkg, d+"/") {
			return d
		}
	}
	return ""
}

func TestImportOrder(t *testing.T) {
	unplaced := map[string]bool{}
	for _, s := range nonTestFiles(t) {
		if packageRank(s.pkg) < 0 {
			if !unplaced[s.pkg] {
				t.Errorf("package %s has no place: put it into package_order.go, below all that it imports", s.pkg)
			}
			unplaced[s.pkg] = true
			continue
		}
		s.imports(func(spec *ast.ImportSpec, path string) {
			to, ok := modulePackage(path)
			if !ok {
				return
			}
			if packageRank(to) >= packageRank(s.pkg) {
				t.Errorf("%s: %s may not import %s, which is below it in package_order.go", s.position(spec), s.pkg,
					to)
			}
			if a, b := daemonTree(s.pkg), daemonTree(to); a != "" && b != "" && a != b &&
				!slices.Contains(sharedCores()[s.pkg], to) {
				t.Errorf("%s: %s may not import %s: daemons meet on the wire", s.position(spec), s.pkg, to)
			}
		})
	}
}

func TestPurity(t *testing.T) {
	for _, s := range nonTestFiles(t) {
		if i := packageRank(s.pkg); i < 0 || !packageOrders()[i].pure {
			continue
		}
		s.imports(func(spec *ast.ImportSpec, path string) {
			if slices.ContainsFunc(impurePackages(), func(p string) bool {
				return path == p || strings.HasPrefix(path, p+"/") && path != "net/netip" // values alone
			}) {
				t.Errorf("%s: %s is pure and may not import %s", s.position(spec), s.pkg, path)
			}
		})
		ast.Inspect(s.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: %s is pure and may start no goroutine", s.position(n), s.pkg)
			case *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
				t.Errorf("%s: %s is pure and has nobody to talk to over a channel", s.position(n), s.pkg)
			case *ast.SelectorExpr:
				if callsAny(n, "time", clockFuncs()...) {
					t.Errorf("%s: %s is pure and may not call time.%s: time comes in as an argument", s.position(n),
						s.pkg, n.Sel.Name)
				}
			}
			return true
		})
	}
}

// callsAny reports whether n is one of those names of a package.
func callsAny(n *ast.SelectorExpr, pkg string, names ...string) bool {
	x, ok := n.X.(*ast.Ident)
	return ok && x.Name == pkg && slices.Contains(names, n.Sel.Name)
}

func TestLibraries(t *testing.T) {
	for _, s := range nonTestFiles(t) {
		s.imports(func(spec *ast.ImportSpec, path string) {
			first, _, _ := strings.Cut(path, "/")
			if _, ok := modulePackage(path); ok || !strings.Contains(first, ".") {
				return
			}
			var library string
			for l := range libraries() {
				if (path == l || strings.HasPrefix(path, l+"/")) && len(l) > len(library) {
					library = l
				}
			}
			if library == "" {
				t.Errorf("%s: %s is not among the libraries in package_order.go", s.position(spec), path)
			} else if !slices.Contains(libraries()[library], s.pkg) {
				t.Errorf("%s: %s may not import %s: it is for %s", s.position(spec), s.pkg, library,
					strings.Join(libraries()[library], ", "))
			}
		})
	}
}

func TestPackages(t *testing.T) {
	comments := map[string]bool{}
	for _, s := range nonTestFiles(t) {
		comments[s.pkg] = comments[s.pkg] || s.Doc != nil
		if slices.Contains(vagueNames(), s.File.Name.Name) {
			t.Errorf("%s: a package called %s may hold anything: name it by its one idea", s.position(s.File.Name),
				s.File.Name.Name)
		}
	}
	for pkg, has := range comments {
		if !has {
			t.Errorf("package %s has no comment", pkg)
		}
	}
}

func TestFiles(t *testing.T) {
	for _, s := range sources(t) {
		if ast.IsGenerated(s.File) {
			continue
		}
		if lines := s.FileSet.File(s.FileStart).LineCount(); lines > maxFileLines {
			t.Errorf("%s/%s has %d lines: one file, one concern", s.pkg, s.name, lines)
		}
		bubble := false
		s.imports(func(spec *ast.ImportSpec, path string) {
			bubble = bubble || path == "testing/synctest"
			if spec.Name != nil && (spec.Name.Name == "." || spec.Name.Name == "_" && path != "embed" &&
				path != "time/tzdata") { // which exports nothing
				t.Errorf("%s: %s is imported as %q", s.position(spec), path, spec.Name.Name)
			}
		})
		for _, d := range s.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: init runs behind the reader's back: build it where it is used", s.position(f))
			}
		}
		if !s.test || bubble {
			continue
		}
		ast.Inspect(s.File, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && callsAny(sel, "time", "Sleep") {
				t.Errorf("%s: a test that sleeps is slow or wrong: wait for what happens, or sleep in "+
					"a synctest bubble", s.position(n))
			}
			return true
		})
	}
}
