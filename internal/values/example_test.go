package values_test

import (
	"fmt"
	"testing"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/values"
)

func ExampleDecode() {
	form, err := values.Append(nil, map[string]any{"label": "cat", "score": 0.75, "box": contract.Tuple{1, 2, 3, 4}, "more": nil}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var result struct {
		Label string  `python:"label"`
		Score float32 `python:"score"`
		Box   [4]int  `python:"box"`
	}
	err = values.Decode(form, &result, nil)
	fmt.Printf("%+v %v\n", result, err)
	// Output: {Label:cat Score:0.75 Box:[1 2 3 4]} <nil>
}

func ExampleAppend_cannot() {
	_, err := values.Append(nil, map[string]any{"a": []any{0, 1, 2, make(chan int)}}, nil)
	fmt.Println(err)
	// Output: encode ["a"][3]: unsupported operation: a chan int cannot cross
}

func ExampleValue() {
	v, err := values.Value([]byte{0x83, 0x01, 0x61, 'a', 0xf6}, nil)
	fmt.Println(v, err)
	// Output: [1 a <nil>] <nil>
}

func BenchmarkSmall(b *testing.B) {
	v := []any{1, 2, 3, "a", map[string]any{"a": 1, "b": 2.5}}
	var form []byte
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			form, _ = values.Append(form[:0], v, nil)
		}
	})
	b.Run("value", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = values.Value(form, nil)
		}
	})
	b.Run("decode into a struct", func(b *testing.B) {
		form, _ := values.Append(nil, inner{1, "name"}, nil)
		b.ReportAllocs()
		for b.Loop() {
			var into inner
			_ = values.Decode(form, &into, nil)
		}
	})
}
