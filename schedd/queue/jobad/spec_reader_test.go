package jobad

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// readDirectly is what SpecReader must return, by a parse of the whole ad.
func readDirectly(text string) (s SharedSpec, name string, err error) {
	ad, err := classad.Parse(text)
	if err != nil {
		return s, "", err
	}
	if s.JobSpec, err = ReadSpec(ad); err != nil {
		return SharedSpec{}, "", err
	}
	s.Alterations, _ = ad.Int(roost.AttrAlterations)
	s.ArrayIndex, _ = ad.Str(roost.AttrArrayIndex)
	name, s.Name = s.Name, ""
	return s, name, nil
}

// randomAd makes an ad of a few attributes with values that are hard to take apart. Ads
// of one kind differ only in what is a job's own.
func randomAd(rng *rand.Rand, kind uint64) string {
	ofKind := rand.New(rand.NewPCG(3, kind))
	texts := []string{`"a"`, `"b"`, `""`, `"with \"quotes\" and \\"`, `"x; JobPrio = 7; y"`, `"a]b"`, `"// no comment"`,
		`"a" == "a" ? "c" : "d"`, `'odd name'`, `"line\nbreak"`}
	lists := []string{`{ "a", "b" }`, `{ "x=[1]", "y;z" }`, `{ }`, `{ JobName }`}
	numbers := []string{"1", "2", "1000", "-1", "JobPrio + 1", "size(JobName)", "size(Script) > 3 ? 2 : 1", "7 / 2"}
	values := map[string][]string{
		"JobName": texts, "Script": texts, "Out": texts, "Arguments": lists, "Environment": lists, "Iwd": texts,
		"JobPrio": numbers, "Walltime": numbers, "RequestCpus": numbers, "RequestMemory": numbers,
		"Requirements": {"TARGET.Memory > RequestMemory", "true"}, "Rank": {"TARGET.Mips / 2", "0"},
		"Group": texts, "PBS": {`[ a = "1" ]`, `[ b = "]"; c = { 1,2 } ]`}, "MailPoints": {`"abe"`, `"n"`},
		"'odd name'": texts, "Prefer": {`{ "Memory > 5" }`, `{ "a; b" }`}, "QDate": numbers, "Alterations": numbers,
		"MaxRetries": numbers, "Packages": lists, "SubmitArguments": lists,
	}
	ad, err := classad.Parse(`[ Cmd = "/bin/true" ]`)
	if err != nil {
		panic(err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		of, choice := values[name], ofKind
		if slices.Contains([]string{"JobName", "Script", "Out", "Arguments", "Environment", "QDate", "PBS"}, name) {
			choice = rng
		}
		if choice.IntN(3) > 0 {
			continue
		}
		part, err := classad.Parse(fmt.Sprintf("[ %s = %s ]", name, of[choice.IntN(1+choice.IntN(len(of)))]))
		if err != nil {
			panic(err)
		}
		ad.Update(part)
	}
	return ad.String()
}

// TestReadTextLikeReadSpec reads random ads, and compares with a parse of each.
func TestReadTextLikeReadSpec(t *testing.T) {
	r := NewSpecReader()
	rng := rand.New(rand.NewPCG(1, 2))
	read, shared := 0, map[*SharedSpec]int{}
	for range 30_000 {
		text := randomAd(rng, rng.Uint64N(300))
		want, wantName, wantErr := readDirectly(text)
		got, name, err := r.ReadText(text)
		if (err != nil) != (wantErr != nil) {
			t.Fatalf("%s: got the error %v, want %v", text, err, wantErr)
		}
		if err != nil {
			continue
		}
		read++
		shared[got]++
		if name != wantName || !reflect.DeepEqual(*got, want) {
			t.Fatalf("%s:\ngot  %q %+v\nwant %q %+v", text, name, *got, wantName, want)
		}
	}
	if read < 1000 || len(shared) > read*9/10 {
		t.Fatalf("%d ads were read, with %d specs: the test tests nothing", read, len(shared))
	}
}

// TestReadTextShares checks that jobs of a sweep have one spec: they differ only in what
// is theirs.
func TestReadTextShares(t *testing.T) {
	r := NewSpecReader()
	var first *SharedSpec
	for i := range 10 {
		ad := classad.New()
		ad.SetString(roost.AttrJobName, fmt.Sprintf("sweep%d", i))
		ad.SetString(roost.AttrScript, fmt.Sprintf("#!/bin/sh\nexec run \"%d\"; exit\n", i))
		ad.SetStrings(roost.AttrEnvironment, []string{fmt.Sprintf("PBS_JOBNAME=sweep%d", i), "A=[;"})
		ad.SetInt(roost.AttrRequestMemory, 1024)
		ad.SetInt(roost.AttrQDate, int64(i))
		s, name, err := r.ReadText(ad.String())
		if err != nil || name != fmt.Sprintf("sweep%d", i) {
			t.Fatalf("got the name %q: %v", name, err)
		}
		if first == nil {
			first = s
		}
		if s != first {
			t.Errorf("job %d has a spec of its own", i)
		}
	}
}

func BenchmarkReadText(b *testing.B) {
	ad, err := classad.Parse(`[ Cmd = "/bin/true"; JobName = "sweep"; Environment = { "A=B", "C=D", "E=F" } ]`)
	if err != nil {
		b.Fatal(err)
	}
	text, r := ad.String(), NewSpecReader()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := r.ReadText(text); err != nil {
			b.Fatal(err)
		}
	}
}
