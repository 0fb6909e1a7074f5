package document

import "testing"

func TestPackageMounts(t *testing.T) {
	for ad, want := range map[string][]string{
		"": nil, "[]": nil, "[": nil,
		`[PackageMounts = {"a@live:/x", "b@2:/y"}; PackageDigests = {"sha256:1", "sha256:2"}; ` +
			`PackageVersions = {"a@1", "b@2"}]`: {"a@live at /x, pinned to a@1", "b@2 at /y"},
		`[PackageMounts = {"a@live:/x"}; PackageDigests = {"sha256:1"}]`: {"a@live at /x"},
		`[PackageMounts = {"a@live:/x"}; PackageDigests = {}]`:           nil, // not pinned yet
	} {
		got := PackageMountsOf(ad)
		if len(got) != len(want) {
			t.Errorf("%s: got %v", ad, got)
			continue
		}
		for i, m := range got {
			if m.Text() != want[i] {
				t.Errorf("%s: got %q, want %q", ad, m.Text(), want[i])
			}
		}
	}
}
