-- Quantities of Kubernetes: read, added up, and written in their canonical form.
-- A quantity is a whole number and a power of ten. It is exact up to 2^53 of its smallest unit.
local byte, error, find, format, match, tonumber = string.byte, error, string.find, string.format, string.match, tonumber
local abs, ceil, floor = math.abs, math.ceil, math.floor

local DECIMAL, BINARY, EXPONENT = "decimal", "binary", "exponent"
local LONGEST = 64
local SMALLEST = -9
local POWERS = { n = -9, u = -6, m = -3, [""] = 0, k = 3, M = 6, G = 9, T = 12, P = 15, E = 18 }
local LETTERS = {}
for letter, power in pairs(POWERS) do LETTERS[power] = letter end
local BINARIES = { Ki = 1024, Mi = 1024 ^ 2, Gi = 1024 ^ 3, Ti = 1024 ^ 4, Pi = 1024 ^ 5, Ei = 1024 ^ 6 }
local BINARY_NAMES = { "Ki", "Mi", "Gi", "Ti", "Pi", "Ei" }

local function fail(text)
  error("quantity '" .. text .. "' is not of the form 100m, 1.5, 2Gi or 1e3", 0)
end

local function rounded_up(count)
  return count < 0 and -ceil(-count) or ceil(count)
end

local function made(count, power, kind)
  while power < SMALLEST do
    count, power = rounded_up(count / 10), power + 1
  end
  while power > 0 do
    count, power = count * 10, power - 1
  end
  return { count = count, power = power, kind = kind }
end

local function parse(text)
  if #text > LONGEST then fail(text) end
  local sign, whole, fraction, unit = match(text, "^([+-]?)(%d*)%.?(%d*)([%a]*[+-]?%d*)$")
  if not sign or whole .. fraction == "" then fail(text) end
  if fraction == "" and not find(text, ".", 1, true) and find(unit, "^%d") then fail(text) end
  local count, power = tonumber(whole .. fraction) or fail(text), -#fraction
  if sign == "-" then count = -count end
  if BINARIES[unit] then return made(count * BINARIES[unit], power, BINARY) end
  if POWERS[unit] then return made(count, power + POWERS[unit], DECIMAL) end
  local exponent = match(unit, "^[eE]([+-]?%d+)$")
  if not exponent or abs(tonumber(exponent)) > LONGEST then fail(text) end
  return made(count, power + tonumber(exponent), EXPONENT)
end

local function scaled(quantity, power)
  return quantity.count * 10 ^ (quantity.power - power)
end

local function add(one, other)
  local power = one.power < other.power and one.power or other.power
  local kind = one.count == 0 and other.kind or one.kind
  return { count = scaled(one, power) + scaled(other, power), power = power, kind = kind }
end

local function is_more(one, other)
  local power = one.power < other.power and one.power or other.power
  return scaled(one, power) > scaled(other, power)
end

local function value_of(quantity)
  return quantity.count / 10 ^ -quantity.power
end

local function write_binary(quantity)
  local count, name, number = rounded_up(value_of(quantity)), "", 0
  while number < #BINARY_NAMES and count % 1024 == 0 do
    number, count = number + 1, count / 1024
    name = BINARY_NAMES[number]
  end
  return format("%.0f%s", count, name)
end

local function write(quantity)
  local count, power = quantity.count, quantity.power
  if count == 0 then return "0" end
  if quantity.kind == BINARY and abs(value_of(quantity)) >= 1024 then return write_binary(quantity) end
  while power % 3 ~= 0 do
    count, power = count * 10, power - 1
  end
  while count % 1000 == 0 and power < 18 do
    count, power = count / 1000, power + 3
  end
  if quantity.kind == EXPONENT then return format("%.0f", count) .. (power ~= 0 and "e" .. power or "") end
  return format("%.0f%s", count, LETTERS[power])
end

return { parse = parse, add = add, is_more = is_more, value_of = value_of, write = write,
  zero = function() return { count = 0, power = 0, kind = DECIMAL } end }
