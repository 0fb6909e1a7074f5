package codec

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

var testOrigin = Origin{Source: accounting.SourceID{1, 2, 3}, Host: "submit"}

// fill sets every field below v to a value that is not zero.
func fill(rng *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(rng, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(rng, v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(rng, v.Index(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range v.Len() {
			fill(rng, v.Index(i))
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(fmt.Sprint("text ", rng.Uint64()))
	case reflect.Uint8:
		v.SetUint(1 + rng.Uint64N(100))
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(1 + rng.Uint64N(1<<31))
	default:
		v.SetInt(1 + rng.Int64N(100_000))
	}
}

// TestRoundTrip fills every field of every kind of entry: one that the form leaves out
// comes back as zero.
func TestRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for kind := range 4 {
		var want accounting.FeedEntry
		v := reflect.ValueOf(&want).Elem().Field(1 + kind)
		fill(rng, v)
		want.Number = 77
		v.Elem().FieldByName("Source").Set(reflect.ValueOf(testOrigin.Source))
		if want.Attempt != nil {
			want.Attempt.Class = "" // of the machine: no feed has it
		}
		if want.Job != nil {
			want.Job.Host, want.Job.Month = testOrigin.Host, accounting.MonthOf(want.Job.Submitted)
		}
		b := AppendEntry(nil, &want)
		got, err := DecodeEntry(b, 77, testOrigin)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
		}
		for cut := range b {
			DecodeEntry(b[:cut], 77, testOrigin) // an error or another entry, never a panic
		}
		b[0]++
		if _, err := DecodeEntry(b, 77, testOrigin); !errors.Is(err, roost.BadConfig) {
			t.Errorf("a later format: got %v", err)
		}
	}
	whole := accounting.FeedEntry{Action: &accounting.JobAction{Index: -1, What: "held"}}
	if got, err := DecodeEntry(AppendEntry(nil, &whole), 1, Origin{}); err != nil || got.Action.Index != -1 {
		t.Errorf("an action on a whole job: got %+v, %v", got.Action, err)
	}
}

func FuzzDecodeEntry(f *testing.F) {
	for kind := range 4 {
		var e accounting.FeedEntry
		fill(rand.New(rand.NewPCG(3, 4)), reflect.ValueOf(&e).Elem().Field(1+kind))
		f.Add(AppendEntry(nil, &e))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := DecodeEntry(b, 1, testOrigin)
		if err != nil {
			return
		}
		once, err := DecodeEntry(AppendEntry(nil, &e), 1, testOrigin) // long texts are cut
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeEntry(AppendEntry(nil, &once), 1, testOrigin)
		if err != nil || !reflect.DeepEqual(again, once) {
			t.Fatalf("%+v became %+v (%v)", once, again, err)
		}
	})
}
