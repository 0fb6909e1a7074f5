package importlint

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// The measured bounds: signs of a readable tree, not its ends. A clear single word of the
// field is better than a second word that says nothing.
const (
	maxOneWordTypes   = 45.0 // percent
	minTypeNameLength = 9.0  // letters, mean
	maxMethods        = 60   // on one receiver
	maxFolderFiles    = 60   // in one folder, tests not counted
)

// TestRetiredWords refuses identifiers that contain a word for which the field has a
// standard term.
func TestRetiredWords(t *testing.T) {
	words, allowed, used := retiredWords(), allowedNames(), map[string]bool{}
	for _, s := range sources(t) {
		if ast.IsGenerated(s.File) {
			continue
		}
		declared(s.File, func(id *ast.Ident) {
			for _, w := range nameWords(id.Name) {
				term, retired := words[w]
				if !retired {
					continue
				}
				if allowed[id.Name] != "" {
					used[id.Name] = true
					continue
				}
				t.Errorf("%s: %s has the retired word %q: the field says %q", s.position(id), id.Name, w, term)
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		if !used[name] {
			t.Errorf("%s is allowed (%s), and nothing has that name", name, allowed[name])
		}
	}
}

// declared calls f for each identifier that the file declares.
func declared(file *ast.File, f func(*ast.Ident)) {
	names := func(list *ast.FieldList) {
		if list == nil {
			return
		}
		for _, field := range list.List {
			for _, id := range field.Names {
				f(id)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			f(n.Name)
			names(n.Recv)
		case *ast.FuncType:
			names(n.TypeParams)
			names(n.Params)
			names(n.Results)
		case *ast.StructType:
			names(n.Fields)
		case *ast.InterfaceType:
			names(n.Methods)
		case *ast.TypeSpec:
			f(n.Name)
		case *ast.ValueSpec:
			for _, id := range n.Names {
				f(id)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					if id, ok := e.(*ast.Ident); ok {
						f(id)
					}
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				for _, e := range []ast.Expr{n.Key, n.Value} {
					if id, ok := e.(*ast.Ident); ok {
						f(id)
					}
				}
			}
		}
		return true
	})
}

// nameWords cuts a name in camel case into its words, in lower case.
func nameWords(name string) []string {
	var words []string
	runes, begin := []rune(name), 0
	for i := 1; i <= len(runes); i++ {
		if i < len(runes) && !startsWord(runes, i) {
			continue
		}
		words = append(words, strings.ToLower(strings.Trim(string(runes[begin:i]), "_")))
		begin = i
	}
	return words
}

// startsWord reports whether a word begins at i: "leaseID", "IDLease" and "a_b" have two.
func startsWord(r []rune, i int) bool {
	switch {
	case r[i] == '_':
		return true
	case !unicode.IsUpper(r[i]):
		return false
	}
	return !unicode.IsUpper(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])
}

func TestNameWords(t *testing.T) {
	for name, want := range map[string]string{
		"a": "a", "claim": "claim", "claimRunner": "claim runner", "leaseID": "lease id", "IDOfLease": "id of lease",
		"HTTPServer": "http server", "x_y": "x y", "PBS": "pbs",
	} {
		if got := strings.Join(nameWords(name), " "); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestReceivers holds the number of methods of each type: at more, it is several types.
func TestReceivers(t *testing.T) {
	methods := map[string]int{}
	for _, s := range nonTestFiles(t) {
		if ast.IsGenerated(s.File) {
			continue
		}
		for _, d := range s.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[s.pkg+"."+receiverName(f)]++
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		if methods[name] > maxMethods {
			t.Errorf("%s has %d methods: at more than %d it is several types", name, methods[name], maxMethods)
		}
	}
}

// receiverName is the type of a method's receiver.
func receiverName(f *ast.FuncDecl) string {
	e := f.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return fmt.Sprintf("%T", e)
		}
	}
}

// TestFolders holds the number of files of each folder.
func TestFolders(t *testing.T) {
	files := map[string]int{}
	for _, s := range nonTestFiles(t) {
		files[s.pkg]++
	}
	allowed := allowedFolders()
	for _, pkg := range slices.Sorted(maps.Keys(files)) {
		if files[pkg] > maxFolderFiles && allowed[pkg] == "" {
			t.Errorf("%s has %d files: cut it where a type can leave", pkg, files[pkg])
		}
	}
}

// TestTypeNames measures the names of types.
func TestTypeNames(t *testing.T) {
	var types, oneWord, letters int
	for _, s := range nonTestFiles(t) {
		if ast.IsGenerated(s.File) {
			continue
		}
		ast.Inspect(s.File, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				types, letters = types+1, letters+len(spec.Name.Name)
				if len(nameWords(spec.Name.Name)) == 1 {
					oneWord++
				}
			}
			return true
		})
	}
	share, mean := 100*float64(oneWord)/float64(types), float64(letters)/float64(types)
	t.Logf("%d types, %.1f %% of one word, %.1f letters in the mean", types, share, mean)
	if share > maxOneWordTypes || mean < minTypeNameLength {
		t.Errorf("got %.1f %% and %.1f letters, want at most %.0f %% and at least %.0f", share, mean, maxOneWordTypes,
			minTypeNameLength)
	}
}
