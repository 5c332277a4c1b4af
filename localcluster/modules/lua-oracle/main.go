// Lua-oracle runs scripts of interpreters in gopher-lua, the Lua of Karmada: a request a line in, an answer a line out.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	lua "github.com/yuin/gopher-lua"
)

type request struct {
	Script, Function string
	Argument         any
}

var libraries = []struct {
	name string
	open lua.LGFunction
}{
	{lua.BaseLibName, lua.OpenBase},
	{lua.TabLibName, lua.OpenTable},
	{lua.StringLibName, lua.OpenString},
	{lua.MathLibName, lua.OpenMath},
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked request
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		answer := map[string]any{}
		if result, err := run(asked); err != nil {
			answer["error"] = err.Error()
		} else {
			answer["result"] = result
		}
		if err := out.Encode(answer); err != nil {
			out.Encode(map[string]any{"error": err.Error()})
		}
	}
}

func run(asked request) (answer any, err error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	state.SetContext(ctx)
	for _, each := range libraries {
		state.Push(state.NewFunction(each.open))
		state.Push(lua.LString(each.name))
		state.Call(1, 0)
	}
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%v", fault)
		}
	}()
	if err = state.DoString(asked.Script); err != nil {
		return nil, err
	}
	call := lua.P{Fn: state.GetGlobal(asked.Function), NRet: 1, Protect: true}
	if err = state.CallByParam(call, toLua(state, asked.Argument)); err != nil {
		return nil, err
	}
	return fromLua(state.Get(-1)), nil
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch given := value.(type) {
	case bool:
		return lua.LBool(given)
	case float64:
		return lua.LNumber(given)
	case string:
		return lua.LString(given)
	case []any:
		table := state.NewTable()
		for _, each := range given {
			table.Append(toLua(state, each))
		}
		return table
	case map[string]any:
		table := state.NewTable()
		for name, each := range given {
			table.RawSetString(name, toLua(state, each))
		}
		return table
	}
	return lua.LNil
}

func fromLua(value lua.LValue) any {
	switch given := value.(type) {
	case lua.LBool:
		return bool(given)
	case lua.LNumber:
		return float64(given)
	case lua.LString:
		return string(given)
	case *lua.LTable:
		list, named := []any{}, map[string]any{}
		given.ForEach(func(key, each lua.LValue) {
			if _, isNumber := key.(lua.LNumber); isNumber {
				list = append(list, fromLua(each))
			} else {
				named[key.String()] = fromLua(each)
			}
		})
		if len(list) > 0 {
			return list
		}
		return named
	}
	return nil
}
