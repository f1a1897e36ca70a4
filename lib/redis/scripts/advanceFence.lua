-- advanceFence: raises the fence to a token before the work starts, so that whoever holds an older token can write
-- nothing from here on, and tells which result is there. Everything is checked before the first write.
--
-- KEYS[1]  the result, a string
-- KEYS[2]  the fence, a hash in the same slot
--
-- ARGV[1]  token in canonical text: 5, 20 and 10 digits with dots between
-- ARGV[2]  job, 1 to 64 bytes
-- ARGV[3]  holder, for people who look: at most 64 bytes, may be empty
--
-- Replies: flat arrays of bulk strings; the first item is the code, the fields follow in this order
--   advanced committedToken revision committedAt now   the fence stands at the token
--   current committedToken revision committedAt now    the fence stood at the token already; nothing was changed
--     (committedToken, revision and committedAt are empty unless a committed result is there;
--      committedAt and now are milliseconds since 1970 by the server's clock)
--   stale token             the fence is above the token, at the one given here; nothing was changed
--   foreign job             the key belongs to the job given here; nothing was changed
--   wrongtype type          the result key holds another type than a string; nothing was changed
--   corrupt field           the fence is not one that these scripts wrote, see the field; nothing was changed
--   badtoken                ARGV[1] is not a canonical token; nothing was changed
--   badargument argument    another argument is not as described above; nothing was changed
--   noperm command          the user may not run a command that is needed here; nothing was changed

-- begin of the part that is the same in every script (a test holds it so)
local TOKEN = '^' .. ('[0-9]'):rep(5) .. '%.' .. ('[0-9]'):rep(20) .. '%.' .. ('[0-9]'):rep(10) .. '$'
local FIELDS = {
  'token', 'job', 'state', 'holder',
  'committedToken', 'digest', 'revision', 'committedAt', 'committedHolder',
  'stale', 'lastStaleToken', 'lastStaleAt',
}

-- Tokens are compared as text and never become numbers: Lua would round them. Their parts have an upper end:
-- the generation is a signed 64-bit number, and the counter behind the sequence repeats at 2147483647.
local function isToken(text)
  return text and #text == 37 and text:find(TOKEN) ~= nil
    and text:sub(7, 26) <= '09223372036854775807' and text:sub(28) <= '2147483646'
end

-- At most 15 digits: a count that Lua adds to exactly.
local function isCount(text)
  return text and #text <= 15 and (text == '0' or text:find('^[1-9][0-9]*$') ~= nil)
end

local function isDigest(text)
  return text and #text == 64 and not text:find('[^0-9a-f]')
end

local function isJob(text)
  return text and #text >= 1 and #text <= 64
end

local function faultIn(fence)
  if not isToken(fence.token) then return 'token' end
  if not isJob(fence.job) then return 'job' end
  if fence.state ~= 'open' and fence.state ~= 'committed' then return 'state' end
  if fence.stale and not isCount(fence.stale) then return 'stale' end
  if fence.lastStaleToken and not isToken(fence.lastStaleToken) then return 'lastStaleToken' end
  if fence.lastStaleAt and not isCount(fence.lastStaleAt) then return 'lastStaleAt' end
  if fence.state == 'committed' and fence.committedToken ~= fence.token then return 'committedToken' end
  if not fence.committedToken then return nil end
  if not isToken(fence.committedToken) or fence.token < fence.committedToken then return 'committedToken' end
  if not isDigest(fence.digest) then return 'digest' end
  if not isCount(fence.revision) then return 'revision' end
  if not isCount(fence.committedAt) then return 'committedAt' end
  return nil
end

-- The fence, or nil when none is stored; and the name of the first field that is not as it must be.
local function readFence()
  local kind = redis.call('TYPE', KEYS[2]).ok
  if kind == 'none' then return nil, nil end
  if kind ~= 'hash' then return nil, 'type ' .. kind end
  local fence = {}
  for index, text in ipairs(redis.call('HMGET', KEYS[2], unpack(FIELDS))) do
    fence[FIELDS[index]] = text
  end
  return fence, faultIn(fence)
end

-- Milliseconds since 1970 as decimal text, put together as text so that no digit is lost.
local function serverMs()
  local time = redis.call('TIME')
  return time[1] .. ('000000' .. time[2]):sub(-6, -4)
end
-- end of the part that is the same in every script

local token, job, holder = ARGV[1], ARGV[2], ARGV[3]

if not isToken(token) then return {'badtoken'} end
if not isJob(job) then return {'badargument', 'job'} end
if not holder or #holder > 64 then return {'badargument', 'holder'} end

local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'string' and kind ~= 'none' then return {'wrongtype', kind} end
local fence, fault = readFence()
if fault then return {'corrupt', fault} end

if redis.acl_check_cmd then
  if not redis.acl_check_cmd('HSET', KEYS[2], 'token', token) then return {'noperm', 'HSET'} end
  if not redis.acl_check_cmd('PERSIST', KEYS[2]) then return {'noperm', 'PERSIST'} end
end

if fence and fence.job ~= job then return {'foreign', fence.job} end
if fence and token < fence.token then return {'stale', fence.token} end

local committedToken, revision, committedAt = '', '', ''
if kind == 'string' and fence and fence.committedToken then
  committedToken, revision, committedAt = fence.committedToken, fence.revision, fence.committedAt
end

if fence and fence.token == token then
  return {'current', committedToken, revision, committedAt, serverMs()}
end

-- Redis before 7.0 cannot be asked what the user may do; there a needed PERSIST comes first, and fails early.
local expires = redis.call('PTTL', KEYS[2]) >= 0
if expires and not redis.acl_check_cmd then redis.call('PERSIST', KEYS[2]) end
redis.call('HSET', KEYS[2], 'token', token, 'job', job, 'state', 'open', 'holder', holder)
if expires then redis.call('PERSIST', KEYS[2]) end
return {'advanced', committedToken, revision, committedAt, serverMs()}
