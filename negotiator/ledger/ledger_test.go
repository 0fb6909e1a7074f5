package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// randomEntry returns an entry that a leader may propose. Some of its commands are
// invalid.
func randomEntry(rng *rand.Rand, l *Ledger) LogEntry {
	who := func() fairshare.Submitter {
		return fairshare.Submitter{Owner: fmt.Sprint("u", rng.IntN(8)), Group: []string{"", "g1", "g1.x"}[rng.IntN(3)]}
	}
	e := LogEntry{At: l.now + rng.Int64N(int64(20*time.Second)) - int64(time.Second), Epoch: l.epoch}
	e.At = max(e.At, 1)
	switch rng.IntN(12) {
	case 0:
		e.Lead = fmt.Sprint("r", rng.IntN(3))
	case 1:
		e.At -= int64(time.Hour)
	case 2:
		e.Epoch--
	}
	for range rng.IntN(3) {
		e.Holds = append(e.Holds, UsageUpdate{who(), 100 * rng.Float64(), 10 * rng.Float64()})
	}
	for range rng.IntN(3) {
		e.Grants = append(e.Grants, RecordedGrant{
			ID: l.lastGrant + 1 + uint64(rng.IntN(3)), Units: 1 + rng.IntN(9), Schedd: "s", Request: 3,
			Submitter: who(), Band: roost.BatchBand, Machine: "m1", Started: 77,
			Resources: roost.Resources{CPU: 1500, Memory: roost.GiB, GPUs: 1, GPUMemory: 5, Disk: 9},
			Stream:    rng.IntN(2) == 0, Waiting: rng.IntN(2) == 0, Unit: rng.IntN(3),
			Limits: []LimitUse{{"matlab", 2}}, Victims: []uint64{4, 0, 9},
		})
	}
	if rng.IntN(4) == 0 {
		e.Pairs = append(e.Pairs, AvoidPair{fmt.Sprint(rng.IntN(20), ".h"), "m1",
			time.Unix(0, l.now+rng.Int64N(int64(time.Minute))), "bad"})
	}
	if rng.IntN(4) == 0 {
		e.Accounts = append(e.Accounts, fairshare.SubmitterAccount{Submitter: who(), Real: rng.Float64(),
			Used: 1000*rng.Float64() - 100, Factor: 7,
			At: l.now + rng.Int64N(int64(time.Minute)) - int64(30*time.Second)})
	}
	for range rng.IntN(3) {
		e.Commands = append(e.Commands, randomCommand(rng, who()))
	}
	return e
}

func randomCommand(rng *rand.Rand, who fairshare.Submitter) AdminCommand {
	object := []struct {
		kind ObjectKind
		text string
	}{
		{KindSubmitter, fmt.Sprintf(`{"user":%q,"group":%q,"factor":%d}`, who.Owner, who.Group, rng.IntN(50))},
		{KindGroup, fmt.Sprintf(`{"name":"g1","cores":%d}`, rng.IntN(20))},
		{KindGroup, fmt.Sprintf(`{"name":"g1.x","cores":%d}`, rng.IntN(20))},
		{KindLimit, fmt.Sprintf(`{"name":"l%d","count":%d,"later":{"b":1,"a":null}}`, rng.IntN(3), rng.IntN(5)-1)},
		{KindSetting, fmt.Sprintf(`{"name":"half_life","value":"%dh"}`, rng.IntN(30))},
		{KindQueue, fmt.Sprintf(`{"name":"q","groups":["g1"],"most":{"cpus":%d}}`, rng.IntN(4))},
		{KindAdmin, `{"who":"ann","capabilities":["limits"]}`},
	}[rng.IntN(7)]
	c := AdminCommand{Who: "ann@n1", Trusted: rng.IntN(3) > 0, Verb: VerbSet, Kind: object.kind,
		Object: json.RawMessage(object.text), Whole: rng.IntN(4) == 0, Unsure: rng.IntN(4) == 0}
	if rng.IntN(4) == 0 {
		t, _ := objectReaders()[object.kind](c.Object)
		c.Verb, c.Name = VerbRemove, t.name()
		if object.kind == KindSubmitter && rng.IntN(2) == 0 {
			c.Verb = VerbReset
		}
		c.Object = nil
	}
	return c
}

// TestReplicas checks that ledgers that apply the same entries are equal, though one is
// saved and loaded now and then.
func TestReplicas(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 11))
		one, two := New(), New()
		one.now, two.now = 1767225600e9, 1767225600e9
		for range 300 {
			e := randomEntry(rng, one)
			read, err := Decode(e.Encode(nil))
			if err != nil {
				t.Fatal(err)
			}
			a, b := one.Apply(&e), two.Apply(read)
			if fmt.Sprint(a) != fmt.Sprint(b) {
				t.Fatalf("seed %d: one says %v, the other %v", seed, a, b)
			}
			one.check()
			two.check()
			if rng.IntN(10) == 0 {
				if two, err = Load(two.Save()); err != nil {
					t.Fatal(err)
				}
			}
			if one.Hash() != two.Hash() {
				t.Fatalf("seed %d: they differ", seed)
			}
		}
	}
}

// TestHash checks the hash after a fixed history. It is the same on every processor, and
// changes only with the format or with the meaning of an entry.
func TestHash(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 12))
	l := New()
	l.now = 1767225600e9
	for range 1000 {
		e := randomEntry(rng, l)
		l.Apply(&e)
	}
	const want = "851494e25771a95b02636b46834161d5f245ca4b7d0d8ad4407bfa79994867f5"
	if got := fmt.Sprintf("%x", l.Hash()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestRecover checks that a recovered cell has an epoch beyond those of unknown leaders,
// though its clock is behind.
func TestRecover(t *testing.T) {
	l := New()
	lead := LogEntry{At: 1767225600e9, Lead: "c1"}
	before := l.Apply(&lead).Epoch
	l.Recover()
	l, err := Load(l.Save())
	if err != nil {
		t.Fatal(err)
	}
	lead = LogEntry{At: 1767225600e9 - int64(time.Hour), Lead: "c2"}
	if now := l.Apply(&lead).Epoch; now <= before+recoveryEpochGap {
		t.Errorf("epoch %d after %d, of which others may have been up to %d later", now, before, recoveryEpochGap)
	}
}

func TestEntryRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 13))
	l := New()
	l.now = 1767225600e9
	for range 500 {
		e := randomEntry(rng, l)
		for i := range e.Pairs {
			e.Pairs[i].Until = e.Pairs[i].Until.UTC()
		}
		text := e.Encode(nil)
		text = append(text, 0xfa, 0x7f, 3, 'n', 'e', 'w') // field 2047, which is unknown
		got, err := Decode(text)
		if err != nil || !reflect.DeepEqual(*got, e) {
			t.Fatalf("%v\ngot  %+v\nwant %+v", err, got, e)
		}
	}
}

// TestUnknownFieldsSurvive checks that an object of a newer version is retained
// unchanged.
func TestUnknownFieldsSurvive(t *testing.T) {
	l := New()
	l.objects["newer"] = map[string]*storedObject{"x": {text: []byte(`{"a":1}`), setAt: 5}}
	l.objects[KindLimit] = map[string]*storedObject{"y": {text: []byte(`{"name":"y","count":{"per":"node"}}`),
		setAt: 5}}
	again, err := Load(l.Save())
	if err != nil || again.Hash() != l.Hash() || len(again.Objects("newer")) != 1 || len(again.Limits()) != 0 {
		t.Fatalf("%v: %v", err, again)
	}
	again.check()
}

func FuzzDecode(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 14))
	for range 20 {
		e := randomEntry(rng, New())
		f.Add(e.Encode(nil))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := Decode(text)
		if err != nil {
			return
		}
		l := New()
		e.Epoch = 0
		if r := l.Apply(e); r.Err == nil {
			l.check()
			again, err := Load(l.Save())
			if err != nil || again.Hash() != l.Hash() {
				t.Fatalf("%v", err)
			}
		}
		if again, err := Decode(e.Encode(nil)); err != nil || !bytes.Equal(again.Encode(nil), e.Encode(nil)) {
			t.Fatalf("%+v\n%+v", e, again)
		}
	})
}

func FuzzLoad(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 15))
	l := New()
	for range 20 {
		e := randomEntry(rng, l)
		l.Apply(&e)
		f.Add(l.Save())
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if l, err := Load(text); err == nil {
			l.Save()
		}
	})
}

// cycleEntry returns the decisions of one cycle with that number of grants, in runs of
// one request on one machine.
func cycleEntry(grants int) *LogEntry {
	e := &LogEntry{At: 1767225600e9, Lead: "x"}
	for i := range grants {
		e.Grants = append(e.Grants, RecordedGrant{
			ID: uint64(i + 1), Units: 1, Schedd: "submit1.example.org", Request: uint64(i % 100),
			Submitter: fairshare.Submitter{Owner: fmt.Sprint("user", i%50), Group: "sci.chem"},
			Band:      roost.BatchBand, Machine: fmt.Sprintf("node%04d.example.org", i), Started: 1767225600e9,
			Resources: roost.Resources{CPU: 1000, Memory: 2 * roost.GiB},
		})
	}
	return e
}

// BenchmarkEncode measures the encoding of 1,000 grants, as a leader does it. Each
// replica decodes and applies them.
func BenchmarkEncode(b *testing.B) {
	e := cycleEntry(1000)
	var buf []byte
	for b.Loop() {
		buf = e.Encode(buf[:0])
	}
	b.ReportMetric(float64(len(buf))/1000, "B/grant")
}

func BenchmarkDecodeApply(b *testing.B) {
	text := cycleEntry(1000).Encode(nil)
	l := New()
	for i := 0; b.Loop(); i++ {
		e, err := Decode(text)
		if err != nil {
			b.Fatal(err)
		}
		e.At += int64(i) * int64(200*time.Millisecond) // 5,000 grants a second
		l.Apply(e)
	}
	b.ReportMetric(float64(len(l.pendingGrants)), "flights")
}

// BenchmarkJSON measures the same with encoding/json.
func BenchmarkJSON(b *testing.B) {
	e := cycleEntry(1000)
	size := 0
	for b.Loop() {
		text, err := json.Marshal(e)
		if err != nil {
			b.Fatal(err)
		}
		size = len(text)
		if err := json.Unmarshal(text, &LogEntry{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size)/1000, "B/grant")
}

func BenchmarkSave(b *testing.B) {
	l := New()
	for i := range 50 {
		e := cycleEntry(1000)
		e.At += int64(i)
		l.Apply(e)
	}
	for b.Loop() {
		l.Save()
	}
}

// TestCapabilities checks that the table of capabilities covers every kind, and nothing
// else.
func TestCapabilities(t *testing.T) {
	var given []ObjectKind
	for _, c := range Capabilities() {
		if c.Description == "" || c.Name == "" {
			t.Errorf("capability %q says nothing", c.Name)
		}
		if c.Name != CapabilityAll {
			given = append(given, c.Kinds...)
		}
	}
	slices.Sort(given)
	if !slices.Equal(given, Kinds()) {
		t.Errorf("capabilities allow %v, and there is %v", given, Kinds())
	}
	l := New()
	for _, kind := range Kinds() {
		for _, verb := range Verbs(kind) {
			for _, name := range CapabilityNames() {
				l.objects[KindAdmin] = map[string]*storedObject{"ann": {value: AdminRights{"ann", []string{name}}}}
				err := l.Check(&AdminCommand{Who: "ann@n1", Verb: verb, Kind: kind, Name: "x", Object: []byte("{}")})
				denied := err != nil && fmt.Sprint(err) == fmt.Sprintf("%s: %v", kind,
					l.CheckCapability("ann@n1", CapabilityFor(kind)))
				if may := name == CapabilityAll || name == CapabilityFor(kind); may == denied {
					t.Errorf("%s %s with capability %s: %v", verb, kind, name, err)
				}
			}
		}
	}
}

// TestSettings checks that the defaults in the table of settings are valid values.
func TestSettings(t *testing.T) {
	l := New()
	for _, r := range Settings() {
		if err := (SettingValue{r.Name, r.Default}).check(l); err != nil {
			t.Errorf("%s: its default: %v", r.Name, err)
		}
		if r.Description == "" {
			t.Errorf("%s says nothing", r.Name)
		}
		l.SettingText(r.Name)
	}
}

// TestMadeOutlivesChanges checks that an object retains the time when it was first set,
// across changes and a restart.
func TestMadeOutlivesChanges(t *testing.T) {
	l := New()
	set := func(at int64, text string) {
		r := l.Apply(&LogEntry{At: at, Epoch: 1,
			Commands: []AdminCommand{{Trusted: true, Verb: VerbSet, Kind: KindLimit, Object: json.RawMessage(text)}}})
		if r.Err != nil || r.Commands[0] != nil {
			t.Fatalf("%s: %v, %v", text, r.Err, r.Commands)
		}
	}
	l.Apply(&LogEntry{At: 1e9, Lead: "a"})
	set(2e9, `{"name":"matlab","count":3}`)
	set(5e9, `{"name":"matlab","count":4}`)
	again, err := Load(l.Save())
	if err != nil || again.Hash() != l.Hash() {
		t.Fatalf("saved and loaded: %v", err)
	}
	for _, l := range []*Ledger{l, again} {
		if o := l.Objects(KindLimit)[0]; o.Made.Unix() != 2 || o.SetAt.Unix() != 5 {
			t.Errorf("made at %v, set at %v; want 2 and 5 seconds", o.Made.Unix(), o.SetAt.Unix())
		}
	}
}
