-- Runs scripts: an environment of its own for each run, safe libraries, and a budget that no script can catch.
local clock, sethook = os.clock, debug.sethook
local setfenv, setmetatable, loadstring, collectgarbage = setfenv, setmetatable, loadstring, collectgarbage
local error, next, pcall, select, type = error, next, pcall, select, type
local tonumber, tostring, unpack = tonumber, tostring, unpack
local concat, insert, remove, date = table.concat, table.insert, table.remove, os.date
local byte, format, gsub, sort, sub = string.byte, string.format, string.gsub, table.sort, string.sub

local STEP = 32 -- instructions between two looks at the budget
local AT_ONCE = 4096 -- elements that C walks without a look at the budget
local LONGEST_DATE = 256 -- bytes of a format of os.date
local OUT_OF_MEMORY = "not enough memory"
local LONGEST_REASON = 1024 -- bytes that are told of an error
local OWN_PLACE = '^%[string "<python>"%]:%d+: ' -- a place in these sources says nothing to who writes a script
local ESCAPE = 27 -- the first byte of compiled code, which is never taken

local left, deadline, spent = 0, 0, nil

local function spend(steps)
  left = left - steps
  if left < 0 then spent = "too many instructions" end
  if clock() > deadline then spent = spent or "too much time" end
  if spent then error(spent, 0) end
end

local function spend_step() spend(STEP) end

-- Take the steps of a function of C from the budget before it makes them.
local function spend_many(steps)
  if steps > AT_ONCE then spend(steps) end
end

-- An error that means the end is raised again wherever a script might catch it.
local function pass_on(is_done, ...)
  if not is_done and ... == OUT_OF_MEMORY then spent = OUT_OF_MEMORY end
  if spent then error(spent, 0) end
  return is_done, ...
end

local function safe_pcall(...)
  return pass_on(pcall(...))
end

local function handled(handle, is_done, ...)
  if is_done then return true, ... end
  return false, handle(...)
end

local function safe_xpcall(call, handle)
  return handled(handle, safe_pcall(call))
end

local function compare(one, other) return one < other end

-- Each comparison is counted, also if a function of C makes it: it takes long for texts of zeros, and the size of
-- a list is not what it holds: of a list with holes it may be 2^30.
local function safe_sort(list, is_less)
  if is_less == nil then return sort(list, compare) end
  if type(is_less) ~= "function" then return sort(list, is_less) end
  return sort(list, function(one, other)
    local answer = is_less(one, other)
    return answer
  end)
end

local function safe_insert(list, ...)
  local at = tonumber((...))
  if select("#", ...) == 2 and type(list) == "table" and at then
    if not (at >= 1 and at <= #list + 1) then error("bad argument #2 to 'insert' (position out of bounds)", 2) end
    spend_many(#list - at)
  end
  return insert(list, ...)
end

local function safe_remove(list, ...)
  local at = tonumber((...))
  if type(list) == "table" and at then
    if not (at >= 1 and at <= #list) then return end
    spend_many(#list - at)
  end
  return remove(list, ...)
end

local function safe_concat(list, ...)
  if type(list) == "table" then spend_many(#list) end
  return concat(list, ...)
end

local function safe_maxn(list)
  local most = 0
  for key in next, list do
    if type(key) == "number" and key > most then most = key end
  end
  return most
end

local function safe_date(shown, ...)
  if type(shown) == "string" and #shown > LONGEST_DATE then error("format of the date too long", 2) end
  return date(shown, ...)
end

local function refuse(name)
  return function()
    error("call function " .. name .. " is not supported in an interpreter", 2)
  end
end

local function shielded(library)
  return setmetatable({}, {
    __index = library,
    __newindex = function(_, name) error("the library cannot be changed: " .. tostring(name), 2) end,
    __metatable = false,
  })
end

local function pick(from, names)
  local picked = {}
  for _, name in ipairs(names) do picked[name] = from[name] end
  return picked
end

local patterns, kube = ...
local strings = pick(string, { "byte", "char", "format", "len", "lower", "reverse", "sub", "upper" })
for name, own in pairs(patterns) do strings[name] = own end
getmetatable("").__index = strings

local tables = pick(table, { "getn" })
tables.concat, tables.insert, tables.remove = safe_concat, safe_insert, safe_remove
tables.maxn, tables.sort = safe_maxn, safe_sort
local numbers = {}
for name, value in pairs(math) do numbers[name] = value end

local safe = pick(_G, { "assert", "error", "ipairs", "next", "pairs", "select", "tonumber", "tostring", "type", "unpack" })
safe.pcall, safe.xpcall = safe_pcall, safe_xpcall
safe.print = function() end
safe._VERSION = _VERSION
safe.string, safe.table, safe.math = shielded(strings), shielded(tables), shielded(numbers)
safe.os = shielded { date = safe_date, time = os.time }
local modules = { kube = shielded(kube) }
safe.require = function(name)
  local module = modules[name]
  if not module then error("module " .. tostring(name) .. " not found: only kube is there", 2) end
  return module
end
for _, name in ipairs {
  "collectgarbage", "dofile", "getfenv", "getmetatable", "load", "loadfile", "loadstring", "module",
  "newproxy", "rawequal", "rawget", "rawset", "setfenv", "setmetatable",
} do
  safe[name] = refuse(name)
end
local GLOBALS = { __index = safe, __metatable = false }

local kept_first, kept_second

local function enter(chunk, env, name, ...)
  chunk()
  local wanted = env[name]
  if type(wanted) ~= "function" then error("no function " .. name, 0) end
  if select("#", ...) == 0 then return end
  return wanted(...)
end

-- The text of an error may be no UTF-8, so each byte that is not ASCII becomes %XX, as does a %.
local function escaped(text)
  return (gsub(sub(text, 1, LONGEST_REASON), "[%%\128-\255]", function(each)
    return format("%%%02X", byte(each))
  end))
end

local function reason_of(problem)
  if type(problem) == "string" then return escaped((gsub(problem, OWN_PLACE, "", 1))) end
  return "an error of type " .. type(problem)
end

local function keep(is_done, first, second)
  sethook()
  if not is_done or spent then return false, spent or reason_of(first) end
  kept_first, kept_second = first, second
  return true
end

local driver = {}

function driver.compile(source, name)
  if byte(source, 1) == ESCAPE then return nil, "compiled code is not taken" end
  local chunk, problem = loadstring(source, "=" .. name)
  return chunk, problem and escaped(problem)
end

-- Return whether the run came to its end, and why not. Its results are kept for `take`, because nothing may be
-- converted while the cap of memory holds.
function driver.run(chunk, name, instructions, seconds, ...)
  local env = setmetatable({}, GLOBALS)
  setfenv(chunk, env)
  left, deadline, spent = instructions, clock() + seconds, nil
  kept_first, kept_second = nil, nil
  sethook(spend_step, "", STEP)
  return keep(pcall(enter, chunk, env, name, ...))
end

function driver.take()
  local first, second = kept_first, kept_second
  kept_first, kept_second = nil, nil
  return first, second
end

function driver.stop()
  sethook()
end

function driver.collect()
  collectgarbage()
end

return driver
