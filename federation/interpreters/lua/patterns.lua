-- The pattern functions of Lua 5.1, written in Lua: the budget of instructions counts each step.
-- Short work is left to the functions of C: only where its cost is known to be small.
local byte, char, find, format, gmatch, gsub, match, rep, sub =
  string.byte, string.char, string.find, string.format, string.gmatch, string.gsub, string.match, string.rep, string.sub
local concat, error, select, tonumber, tostring, type, unpack =
  table.concat, error, select, tonumber, tostring, type, unpack

local SMALL = ... or 200000 -- steps that C may take at once: less than a millisecond
local LONGEST = 2 ^ 20 -- bytes of a text that string.rep makes
local DEEPEST = 180 -- steps into each other, as many as C allows
local MOST = 32 -- captures of a pattern
local POSITION, OPEN = -2, -1

local PERCENT, CARET, DOLLAR, DOT = 37, 94, 36, 46
local LEFT, RIGHT, BRACKET, CLOSING = 40, 41, 91, 93
local STAR, PLUS, MINUS, ASK = 42, 43, 45, 63
local BALANCE, FRONTIER = 98, 102

local function is_small(text, pattern)
  local _, loops = gsub(pattern, "[%*%+%-%?]", "")
  local _, jumps = gsub(pattern, "%%[b%d]", "")
  return (#text + 1) ^ (loops + jumps + 1) * (#pattern + 1) <= SMALL
end

local function is_plain(pattern)
  return not find(pattern, "[%^%$%*%+%?%.%(%[%%%-]")
end

local function find_plain(text, wanted, from)
  if (#text + 1) * (#wanted + 1) <= SMALL or #wanted <= 1 then
    return find(text, wanted, from, true)
  end
  for start = from, #text - #wanted + 1 do
    if sub(text, start, start + #wanted - 1) == wanted then
      return start, start + #wanted - 1
    end
  end
end

-- Classes of characters are tables of 256 booleans, made when they are needed first.
-- Any other letter stands for itself.
local classes = {}
for letter in gmatch("acdlpsuwxzACDLPSUWXZ", ".") do classes[byte(letter)] = {} end
local function class_of(letter)
  local class = classes[letter]
  if class and class[0] == nil then
    local shown = "^%" .. char(letter) .. "$"
    for code = 0, 255 do class[code] = find(char(code), shown) ~= nil end
  end
  return class
end

local function end_of_class(state, at)
  local pattern = state.pattern
  local code = byte(pattern, at)
  if code == PERCENT then
    if at >= #pattern then error("malformed pattern (ends with '%')", 0) end
    return at + 2
  end
  if code ~= BRACKET then return at + 1 end
  at = at + 1
  if byte(pattern, at) == CARET then at = at + 1 end
  repeat
    local inner = byte(pattern, at)
    if not inner then error("malformed pattern (missing ']')", 0) end
    at = at + (inner == PERCENT and 2 or 1)
  until byte(pattern, at) == CLOSING
  return at + 1
end

local function fits_one(code, letter)
  local class = class_of(letter)
  if class then return class[code] end
  return code == letter
end

local function fits_set(pattern, code, at, last)
  local is_wanted = true
  if byte(pattern, at + 1) == CARET then is_wanted, at = false, at + 1 end
  at = at + 1
  while at < last do
    local low = byte(pattern, at)
    if low == PERCENT then
      if fits_one(code, byte(pattern, at + 1)) then return is_wanted end
      at = at + 2
    elseif byte(pattern, at + 1) == MINUS and at + 2 < last then
      if low <= code and code <= byte(pattern, at + 2) then return is_wanted end
      at = at + 3
    else
      if low == code then return is_wanted end
      at = at + 1
    end
  end
  return not is_wanted
end

local function fits(state, code, at, after)
  if not code then return false end
  local first = byte(state.pattern, at)
  if first == DOT then return true end
  if first == PERCENT then return fits_one(code, byte(state.pattern, at + 1)) end
  if first == BRACKET then return fits_set(state.pattern, code, at, after - 1) end
  return first == code
end

local go

local function deeper(state, from, at)
  state.depth = state.depth + 1
  if state.depth > DEEPEST then error("pattern too complex", 0) end
  local stop = go(state, from, at)
  state.depth = state.depth - 1
  return stop
end

local function go_greedy(state, from, at, after, least)
  local text, count = state.text, 0
  while fits(state, byte(text, from + count), at, after) do count = count + 1 end
  while count >= least do
    local stop = deeper(state, from + count, after + 1)
    if stop then return stop end
    count = count - 1
  end
end

local function go_lazy(state, from, at, after)
  while true do
    local stop = deeper(state, from, after + 1)
    if stop then return stop end
    if not fits(state, byte(state.text, from), at, after) then return nil end
    from = from + 1
  end
end

local function open(state, from, at, kind)
  if state.count >= MOST then error("too many captures", 0) end
  state.count = state.count + 1
  state[state.count] = { from, kind }
  local stop = deeper(state, from, at)
  if not stop then state.count = state.count - 1 end
  return stop
end

local function close(state, from, at)
  for number = state.count, 1, -1 do
    local capture = state[number]
    if capture[2] == OPEN then
      capture[2] = from - capture[1]
      local stop = deeper(state, from, at)
      if not stop then capture[2] = OPEN end
      return stop
    end
  end
  error("invalid pattern capture", 0)
end

local function end_of_balance(state, from, at)
  local text, first, last = state.text, byte(state.pattern, at, at + 1)
  if not last then error("unbalanced pattern", 0) end
  if byte(text, from) ~= first then return nil end
  local level = 1
  for place = from + 1, #text do
    local code = byte(text, place)
    if code == last then
      level = level - 1
      if level == 0 then return place + 1 end
    elseif code == first then
      level = level + 1
    end
  end
end

local function end_of_repeated(state, from, digit)
  local capture = state[digit - 48]
  if digit == 48 or digit - 48 > state.count or capture[2] == OPEN then error("invalid capture index", 0) end
  if capture[2] == POSITION then return nil end
  local wanted = sub(state.text, capture[1], capture[1] + capture[2] - 1)
  return sub(state.text, from, from + #wanted - 1) == wanted and from + #wanted or nil
end

local function is_frontier(state, from, at)
  if byte(state.pattern, at) ~= BRACKET then error("missing '[' after '%f' in pattern", 0) end
  local after = end_of_class(state, at)
  local before, here = from == 1 and 0 or byte(state.text, from - 1), byte(state.text, from) or 0
  local is_out = not fits_set(state.pattern, before, at, after - 1)
  return is_out and fits_set(state.pattern, here, at, after - 1) and after or nil
end

-- Return the place after the match of the pattern from `at` on, or nil.
function go(state, from, at)
  local pattern, text = state.pattern, state.text
  while at <= #pattern do
    local code, next_code = byte(pattern, at, at + 1)
    if code == LEFT then
      if next_code == RIGHT then return open(state, from, at + 2, POSITION) end
      return open(state, from, at + 1, OPEN)
    elseif code == RIGHT then
      return close(state, from, at + 1)
    elseif code == DOLLAR and at == #pattern then
      return from == #text + 1 and from or nil
    elseif code == PERCENT and next_code == BALANCE then
      from, at = end_of_balance(state, from, at + 2), at + 4
      if not from then return nil end
    elseif code == PERCENT and next_code == FRONTIER then
      at = is_frontier(state, from, at + 2)
      if not at then return nil end
    elseif code == PERCENT and next_code and next_code >= 48 and next_code <= 57 then
      from, at = end_of_repeated(state, from, next_code), at + 2
      if not from then return nil end
    else
      local after = end_of_class(state, at)
      local many = byte(pattern, after)
      if many == STAR then return go_greedy(state, from, at, after, 0) end
      if many == PLUS then return go_greedy(state, from, at, after, 1) end
      if many == MINUS then return go_lazy(state, from, at, after) end
      local is_there = fits(state, byte(text, from), at, after)
      if many == ASK then
        if is_there then
          local stop = deeper(state, from + 1, after + 1)
          if stop then return stop end
        end
        at = after + 1
      else
        if not is_there then return nil end
        from, at = from + 1, after
      end
    end
  end
  return from
end

local function capture_at(state, number)
  local start, size = state[number][1], state[number][2]
  if size == OPEN then error("unfinished capture", 0) end
  return size == POSITION and start or sub(state.text, start, start + size - 1)
end

local function captures_of(state, from, stop, is_whole)
  if state.count == 0 then
    if is_whole then return sub(state.text, from, stop - 1) end
    return
  end
  local found = {}
  for number = 1, state.count do found[number] = capture_at(state, number) end
  return unpack(found, 1, state.count)
end

local function state_of(text, pattern)
  return { text = text, pattern = pattern, count = 0, depth = 0 }
end

local function search(state, from)
  local is_anchored = byte(state.pattern, 1) == CARET
  local at = is_anchored and 2 or 1
  repeat
    state.count, state.depth = 0, 0
    local stop = go(state, from, at)
    if stop then return from, stop end
    from = from + 1
  until is_anchored or from > #state.text + 1
end

local function text_of(value, number, name)
  if type(value) == "string" then return value end
  if type(value) == "number" then return tostring(value) end
  error(format("bad argument #%d to '%s' (string expected, got %s)", number, name,
    value == nil and "no value" or type(value)), 3)
end

local function start_of(text, init)
  local from = tonumber(init) or 1
  if from < 0 then from = #text + from + 1 end
  if from < 1 then from = 1 end
  return from > #text + 1 and #text + 1 or from - from % 1
end

local safe = {}

function safe.find(text, pattern, init, is_literal)
  text, pattern = text_of(text, 1, "find"), text_of(pattern, 2, "find")
  local from = start_of(text, init)
  if is_literal or is_plain(pattern) then return find_plain(text, pattern, from) end
  if is_small(text, pattern) then return find(text, pattern, from) end
  local state = state_of(text, pattern)
  local start, stop = search(state, from)
  if start then return start, stop - 1, captures_of(state, start, stop, false) end
end

function safe.match(text, pattern, init)
  text, pattern = text_of(text, 1, "match"), text_of(pattern, 2, "match")
  local from = start_of(text, init)
  if is_small(text, pattern) then return match(text, pattern, from) end
  local state = state_of(text, pattern)
  local start, stop = search(state, from)
  if start then return captures_of(state, start, stop, true) end
end

function safe.gmatch(text, pattern)
  text, pattern = text_of(text, 1, "gmatch"), text_of(pattern, 2, "gmatch")
  if is_small(text, pattern) then return gmatch(text, pattern) end
  local from = 1
  return function()
    while from <= #text + 1 do
      local state = state_of(text, pattern)
      local stop = go(state, from, 1)
      if stop then
        local start = from
        from = stop > start and stop or stop + 1
        return captures_of(state, start, stop, true)
      end
      from = from + 1
    end
  end
end

local function filled(state, from, stop, template)
  local function fill(letter)
    if letter == "0" then return sub(state.text, from, stop - 1) end
    local digit = tonumber(letter)
    if not digit then return letter end
    if digit == 1 and state.count == 0 then return sub(state.text, from, stop - 1) end
    if digit > state.count then error("invalid capture index", 0) end
    return capture_at(state, digit)
  end
  return (gsub(template, "%%(.)", fill))
end

local function replacement(state, from, stop, by)
  local kind, value = type(by), nil
  if kind == "table" then
    value = by[(captures_of(state, from, stop, true))]
  elseif kind == "function" then
    value = by(captures_of(state, from, stop, true))
  else
    return filled(state, from, stop, by)
  end
  if value == nil or value == false then return sub(state.text, from, stop - 1) end
  if type(value) ~= "string" and type(value) ~= "number" then
    error("invalid replacement value (a " .. type(value) .. ")", 0)
  end
  return value
end

local function gsub_in_steps(text, pattern, by, most)
  local parts, size, count, from = {}, 0, 0, 1
  local is_anchored = byte(pattern, 1) == CARET
  while count < most do
    local state = state_of(text, pattern)
    local stop = go(state, from, is_anchored and 2 or 1)
    if stop then
      count, size = count + 1, size + 1
      parts[size] = replacement(state, from, stop, by)
    end
    if stop and stop > from then
      from = stop
    elseif from <= #text then
      size = size + 1
      parts[size], from = sub(text, from, from), from + 1
    else
      break
    end
    if is_anchored then break end
  end
  parts[size + 1] = sub(text, from)
  return concat(parts), count
end

function safe.gsub(text, pattern, by, most)
  text, pattern = text_of(text, 1, "gsub"), text_of(pattern, 2, "gsub")
  local kind = type(by)
  if kind == "number" then by, kind = tostring(by), "string" end
  if kind ~= "string" and kind ~= "table" and kind ~= "function" then
    error("bad argument #3 to 'gsub' (string/function/table expected)", 2)
  end
  local is_short = kind ~= "string" or #by <= 256
  if is_short and is_small(text, pattern) then return gsub(text, pattern, by, most) end
  return gsub_in_steps(text, pattern, by, tonumber(most) or #text + 1)
end

function safe.rep(text, count)
  text = text_of(text, 1, "rep")
  if type(tonumber(count)) ~= "number" then
    error("bad argument #2 to 'rep' (number expected)", 2)
  end
  count = tonumber(count)
  if #text == 0 or count < 1 then return "" end
  if not (#text * count <= LONGEST) then error("resulting string too large", 2) end
  return rep(text, count)
end

return safe
